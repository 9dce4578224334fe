/** Checks a body against its shape; what is wrong is said in a sentence that names the field. */
import { BrokerError } from "@queen/protocol";
import type { z } from "zod";

export function checkBody<T extends z.ZodType>(shape: T, body: unknown): z.output<T> {
  const checked = shape.safeParse(body, { error: sentence, reportInput: true });
  if (checked.success) return checked.data;
  throw new BrokerError("VALIDATION_FAILED", checked.error.issues[0]!.message);
}

type Issue = z.core.$ZodRawIssue;

const AN: Readonly<Record<string, string>> = {
  array: "an array",
  object: "an object",
  int: "an integer",
  record: "an object",
};

function sentence(issue: Issue): string | undefined {
  const field = issue.path?.length ? issue.path.join(".") : "The body";
  switch (issue.code) {
    case "invalid_type":
      if (issue.input === undefined) return `${field} is required`;
      return `${field} must be ${AN[issue.expected] ?? `a ${issue.expected}`}${got(field, issue.input)}.`;
    case "invalid_value":
      return `${field} must be one of ${issue.values.join(", ")}${got(field, issue.input)}.`;
    case "too_small":
      return `${field} must be at least ${issue.minimum}${unit(issue.origin)}.`;
    case "too_big":
      return `${field} must be at most ${issue.maximum}${unit(issue.origin)}.`;
    default:
      return undefined;
  }
}

// What stands in these is not repeated.
const SECRET = ["password", "credential"];

const got = (field: string, input: unknown): string =>
  SECRET.includes(field) ? "" : `, got ${JSON.stringify(input)?.slice(0, 40) ?? typeof input}`;

const unit = (origin: string): string =>
  origin === "string" ? " characters long" : origin === "array" ? " long" : "";
