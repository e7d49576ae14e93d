export * from "./harness/types.js";
