import type { MastraSandbox } from "@mastra/core/workspace";
import type { Sandbox } from "../../../contracts/sandbox.js";

/** What the process manager needs of its sandbox. */
export interface RunningSandbox extends MastraSandbox {
  /** Deadline of commands that have none, in milliseconds. */
  readonly timeout: number | undefined;
  /** Works with the open sandbox, once more if it was lost. */
  whileAlive<T>(work: (sandbox: Sandbox) => Promise<T>): Promise<T>;
}
