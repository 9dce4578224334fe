/** Reads the fragment of a spool record, which may be anything: the file may come from elsewhere. */
import { BrokerError, PAYLOAD_DEPTH_MAX, TRANSACTION_ID_LENGTH_MAX } from "@queen/protocol";
import { JsonScanner } from "../operations/json-scanner.ts";
import { checkName } from "../operations/names.ts";
import { transactionIdJson } from "../operations/segment.ts";

const TEXT = '"(?:[^"\\\\]|\\\\.)*"';
const FRAGMENT = new RegExp(
  `^"transactionId":${TEXT},"traceId":(?:null|${TEXT}),"producerSub":(?:null|${TEXT})` +
    `(?:,"traceparent":${TEXT})?,"data":`,
);

/** The transactionId in a fragment. Throws if it is not one that could be stored. */
export function checkFragment(fragment: string): string {
  if (!FRAGMENT.test(fragment)) throw new BrokerError("VALIDATION_FAILED", "The record holds no message.");
  const scanner = new JsonScanner(`{${fragment}}`);
  scanner.expectEnd(scanner.skipValue(0, PAYLOAD_DEPTH_MAX + 1));
  const json = Buffer.from(transactionIdJson(fragment), "latin1").toString("utf8");
  return checkName(JSON.parse(json), "transactionId", { lengthMax: TRANSACTION_ID_LENGTH_MAX });
}
