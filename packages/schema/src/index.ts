export * from "./migrate.ts";
export * from "./release.ts";
