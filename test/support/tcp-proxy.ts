/** The TCP proxy that users have for their own tests serves ours. */
export * from "@queen/testing/tcp-proxy";
