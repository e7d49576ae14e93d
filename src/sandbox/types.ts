export type * from "../../contracts/backend.js";
export type * from "../../contracts/driver.js";
export * from "../../contracts/sandbox.js";
