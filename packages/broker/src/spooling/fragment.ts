/** Reads the fragment of a spool record, which may be anything: the file may come from elsewhere. */
import { isUtf8 } from "node:buffer";
import { BrokerError, PAYLOAD_DEPTH_MAX, TRANSACTION_ID_LENGTH_MAX } from "@queen/protocol";
import { JsonScanner } from "../operations/json-scanner.ts";
import { checkName } from "../operations/names.ts";
import { transactionIdJson } from "../operations/segment.ts";

/** The transactionId in a fragment. Throws if it is not one that could be stored. */
export function checkFragment(fragment: string): string {
  const scanner = new JsonScanner(`{${fragment}}`);
  if (!hasForm(scanner) || !isUtf8(Buffer.from(fragment, "latin1"))) {
    throw new BrokerError("VALIDATION_FAILED", "The record holds no message.");
  }
  scanner.expectEnd(scanner.skipValue(0, PAYLOAD_DEPTH_MAX + 1));
  const json = Buffer.from(transactionIdJson(fragment), "latin1").toString("utf8");
  return checkName(JSON.parse(json), "transactionId", { lengthMax: TRANSACTION_ID_LENGTH_MAX });
}

/** Whether its members come in the order, and without the spaces, that a push gives them. */
function hasForm(scanner: JsonScanner): boolean {
  const { text } = scanner;
  let at = 1;
  const isNext = (token: string): boolean => {
    if (!text.startsWith(token, at)) return false;
    at += token.length;
    return true;
  };
  const isText = (): boolean => {
    if (!scanner.isString(at)) return false;
    at = scanner.skipString(at);
    return true;
  };
  return (
    isNext('"transactionId":') &&
    isText() &&
    isNext(',"traceId":') &&
    (isNext("null") || isText()) &&
    isNext(',"producerSub":') &&
    (isNext("null") || isText()) &&
    (!isNext(',"traceparent":') || isText()) &&
    isNext(',"data":')
  );
}
