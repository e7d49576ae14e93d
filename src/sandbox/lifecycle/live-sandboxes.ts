import { isDeepStrictEqual } from "node:util";
import type { Driver } from "../../../contracts/driver.js";
import { SandboxError } from "../../../contracts/errors.js";
import { DEFAULT_OPERATION_TIMEOUT, type Sandbox, type SandboxOptions } from "../../../contracts/sandbox.js";
import { MAX_OUTPUT_BYTES } from "../../util/sanitize.js";
import { shareSandbox } from "../portable.js";
import { otherThan } from "./made-options.js";

/** A sandbox that this process has open, and what it was opened with. */
interface Live {
  readonly sandbox: Sandbox;
  readonly opts: SandboxOptions;
  /** Makes its end remove it, though it was to be kept. */
  readonly discard: () => void;
}

const live = new Map<string, Live>();
const turns = new Map<string, Promise<unknown>>();

/** Options of a call that say nothing about the sandbox. */
const OF_THE_CALL: ReadonlySet<string> = new Set(["id", "ifExists", "signal", "onEvent", "runTimeout"]);
/** Never shown: they may be secrets. */
const HIDDEN: ReadonlySet<string> = new Set(["env", "githubToken", "onBlocked"]);
const DEFAULTS: SandboxOptions = {
  keep: false,
  labels: {},
  limits: {},
  publish: [],
  isolation: "required",
  paths: "workdir",
  operationTimeout: DEFAULT_OPERATION_TIMEOUT,
  maxOutput: MAX_OUTPUT_BYTES,
};

/** Makes a sandbox known to later calls of this process. */
export function addLive(sandbox: Sandbox, opts: SandboxOptions, discard: () => void): void {
  live.set(sandbox.id, { sandbox, opts, discard });
}

/** Makes the teardown of an open sandbox remove it, though it was opened to be kept. */
export function discardLive(id: string): void {
  live.get(id)?.discard();
}

/** Remembers what has changed of the options of an open sandbox. */
export function changeLive(id: string, changed: Pick<SandboxOptions, "network" | "secrets">): void {
  const found = live.get(id);
  if (found !== undefined) live.set(id, { ...found, opts: { ...found.opts, ...changed } });
}

/** Forgets a sandbox that was closed. */
export function dropLive({ id }: Pick<Driver, "id">): void {
  live.delete(id);
}

/** Whether this process has the sandbox open. */
export function isLive(id: string): boolean {
  return live.has(id);
}

/**
 * A second handle to a sandbox that this process has open; undefined if it has none with this id. An option that differs from what the sandbox was
 * opened with is `conflict`. While the sandbox is being closed, waits until that is done.
 */
export async function shareLive(id: string, given: SandboxOptions): Promise<Sandbox | undefined> {
  const found = live.get(id);
  if (found === undefined) return undefined;
  const handle = shareSandbox(found.sandbox, given);
  if (handle === undefined) {
    await found.sandbox.teardown();
    return undefined;
  }
  assertSame(found, given);
  return handle;
}

/** Runs `work` when every earlier work under this key has ended: two calls of this process must not open one sandbox twice. */
export async function inTurn<T>(key: string, work: () => Promise<T>): Promise<T> {
  const turn = (turns.get(key) ?? Promise.resolve()).then(work, work);
  turns.set(key, turn);
  try {
    return await turn;
  } finally {
    if (turns.get(key) === turn) turns.delete(key);
  }
}

function assertSame({ sandbox, opts }: Live, given: SandboxOptions): void {
  for (const [option, value] of Object.entries(given)) {
    if (value === undefined || OF_THE_CALL.has(option)) continue;
    const name = option as keyof SandboxOptions;
    if (isDeepStrictEqual(value, opts[name] ?? DEFAULTS[name])) continue;
    const isOwn = !HIDDEN.has(option) && (typeof value !== "object" || option === "labels" || option === "limits");
    const shown = isOwn ? ` (${JSON.stringify(value)})` : "";
    throw new SandboxError(
      "conflict",
      `Sandbox "${sandbox.name ?? sandbox.id}" is open in this process with ${otherThan(option)} than this call gives${shown}`,
      { retryable: false, hint: `omit ${option}: a second handle has what the sandbox was opened with` },
    );
  }
}
