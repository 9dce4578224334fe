export * from "./errors.ts";
export * from "./ids.ts";
export * from "./limits.ts";
export * from "./remembering-last.ts";
