import type { Writable } from "node:stream";

/** An output of this program: standard output or standard error. */
export interface Output extends Writable {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
}
