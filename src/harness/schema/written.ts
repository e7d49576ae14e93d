import type { AgentDriver } from "../node-types.js";

/** What a document can have of what code writes: no functions, and drivers by their names. */
export type Written<T> = T extends AgentDriver | ((...args: never) => unknown)
  ? never
  : T extends readonly (infer I)[]
    ? readonly Written<I>[]
    : T extends object
      ? { [K in keyof T as [Written<Exclude<T[K], undefined>>] extends [never] ? never : K]: Written<T[K]> }
      : T;
