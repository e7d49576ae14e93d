import { setTimeout as delay } from "node:timers/promises";
import { SandboxError } from "../../contracts/errors.js";

/** Every place where a test can make this process fail, right after the step named there. */
export const FAILPOINTS = [
  /** A name is taken for a sandbox that has no record yet. */
  "name.claimed",
  /** The sandbox has a record; nothing else exists. */
  "create.recorded",
  /** Its branch was created. */
  "create.branched",
  /** The entry of its worktree is written, but git does not see it yet. */
  "create.drafted",
  /** Git knows its worktree, which has no files yet. */
  "create.registered",
  /** The git directory that its commands see was written. */
  "create.sandbox-git",
  /** Its control groups were made. */
  "create.grouped",
  /** Its guest runs; its files may still be on their way. */
  "create.started",
  /** Its files were written. */
  "create.populated",
  /** Its record says that it is ready. */
  "create.ready",
  /** A shared checkout was written under a temporary name. */
  "base.drafted",
  /** A ref protects the commit of a shared checkout. */
  "base.held",
  /** A shared checkout has its final name. */
  "base.renamed",
  /** A command runs in the sandbox. */
  "exec.started",
  /** Every process of the sandbox is frozen. */
  "snapshot.frozen",
  /** A jail has committed the files. */
  "snapshot.committed",
  /** The objects are in the repository. */
  "snapshot.imported",
  /** A ref protects the commit. */
  "snapshot.referenced",
  /** The ignored files are in place. */
  "snapshot.archived",
  /** The snapshot has a record. */
  "snapshot.recorded",
  /** The files to restore lie next to the old ones. */
  "restore.staged",
  /** They have replaced the old ones. */
  "restore.filled",
  /** The files of the origin were copied out. */
  "fork.taken",
  /** A fork was made, perhaps not the last one. */
  "fork.made",
  /** The files to push are committed. */
  "push.committed",
  /** The remote has accepted them. */
  "push.accepted",
  /** The local branch was updated. */
  "push.moved",
  /** Everything in the sandbox was ended. */
  "teardown.stopped",
  /** The record says that the sandbox is being removed. */
  "removal.marked",
  /** One of its resources is gone, but still in the record. */
  "removal.resource",
  /** All of its resources are gone; the record is not. */
  "removal.emptied",
  /** The record was renamed before its deletion. */
  "removal.discarded",
  /** The leftover sandboxes were listed. */
  "reap.listed",
  /** They were removed; the sweep has not started. */
  "reap.removed",
  /** New content was written under a temporary name. */
  "file.written",
  /** A lock was taken. */
  "lock.held",
] as const;

/** The name of a failpoint. */
export type Failpoint = (typeof FAILPOINTS)[number];

type Fault = "kill" | "throw" | "enospc" | { delay: number };

interface Plan {
  fault: Fault;
  /** Which pass fails; earlier and later ones go through. */
  pass: number;
}

const plans = parsePlans(process.env["GLOVEBOX_FAILPOINTS"]);
const passes = new Map<string, number>();

/**
 * Fails here if the environment says so: `GLOVEBOX_FAILPOINTS=name=kill|throw|enospc|delay:ms[@pass]`, several separated by commas. For tests; does
 * nothing without the variable.
 */
export function failpoint(name: Failpoint): Promise<void> | undefined {
  return plans === undefined ? undefined : pass(name, plans);
}

/** Parses the variable. A misspelt fault throws, so that it can't look like a passed test. */
export function parsePlans(text: string | undefined): ReadonlyMap<string, Plan> | undefined {
  if (text === undefined || text === "") return undefined;
  const entries = text.split(",").map((part): [string, Plan] => {
    const [, name = "", how = "", ms, at = "1"] =
      /^([a-z.-]+)=(kill|throw|enospc|delay:(\d{1,6}))(?:@([1-9]\d{0,3}))?$/.exec(part) ?? [];
    if (isFailpoint(name)) return [name, { fault: faultOf(how, ms), pass: Number(at) }];
    throw new SandboxError("invalid_argument", `Invalid GLOVEBOX_FAILPOINTS ${JSON.stringify(part)}`, {
      hint: "name=kill|throw|enospc|delay:ms, then @n for the n-th pass",
    });
  });
  return new Map(entries);
}

function isFailpoint(name: string): boolean {
  return FAILPOINTS.some((known) => known === name);
}

function faultOf(how: string, ms: string | undefined): Fault {
  if (ms !== undefined) return { delay: Number(ms) };
  return how === "kill" || how === "enospc" ? how : "throw";
}

async function pass(name: Failpoint, active: ReadonlyMap<string, Plan>): Promise<void> {
  const plan = active.get(name);
  if (plan === undefined) return;
  const count = (passes.get(name) ?? 0) + 1;
  passes.set(name, count);
  if (count !== plan.pass) return;
  if (plan.fault === "kill") process.kill(process.pid, "SIGKILL");
  if (plan.fault === "enospc") throw Object.assign(new Error(`ENOSPC: failpoint ${name}`), { code: "ENOSPC" });
  if (plan.fault === "throw") throw new SandboxError("unavailable", `Failpoint ${name}`);
  if (typeof plan.fault === "object") await delay(plan.fault.delay);
}
