/**
 * Standard Schema (https://standardschema.dev) is the interface that zod, valibot, arktype and others share.
 * A queue with a schema checks what is pushed and what is popped.
 *
 * The wire carries the schema's input, and consumers get its output: a schema that turns text into dates does
 * so at each consumer, and one whose output is not its own input still works.
 */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}

export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

export interface SchemaIssue {
  readonly message: string;
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

export type InputOf<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["input"];
export type OutputOf<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["output"];

export async function validate<Output>(
  schema: StandardSchema<unknown, Output>,
  value: unknown,
): Promise<SchemaResult<Output>> {
  return schema["~standard"].validate(value);
}

// A dead letter's reason is read by people: a few issues tell what is wrong.
const ISSUES_SHOWN_MAX = 5;

/** `payload does not match the schema: lines.0.price: expected number; total: required` */
export function describeIssues(issues: readonly SchemaIssue[]): string {
  const shown = issues.slice(0, ISSUES_SHOWN_MAX).map(({ message, path }) => {
    const place = (path ?? []).map((part) => String(typeof part === "object" ? part.key : part)).join(".");
    return place === "" ? message : `${place}: ${message}`;
  });
  const more = issues.length - shown.length;
  return `payload does not match the schema: ${shown.join("; ")}${more > 0 ? `; and ${more} more` : ""}`;
}
