import { SandboxError, toSandboxError } from "../../../contracts/errors.js";
import type { Capabilities } from "../../../contracts/types.js";
import { claimRecord, updateRecord } from "../../ledger.js";
import { assertCapabilities } from "../capabilities.js";
import { keptOptions, reopenOptions } from "../kept-options.js";
import { validateSandboxOptions } from "../options.js";
import { createSandbox, redactError } from "../portable.js";
import { reapRecords } from "../reap-records.js";
import type { Sandbox, SandboxOptions } from "../types.js";
import { conformance } from "./daytona/conformance.js";
import { daytonaCapabilities, Life, type Plan } from "./daytona/life.js";
import { removeSnapshot } from "./daytona/native-snapshot.js";
import { networkSettings } from "./daytona/network-settings.js";
import { BACKEND, readAccount, readSource } from "./daytona/options.js";
import { probeDaytona } from "./daytona/probe.js";
import { listRemote } from "./daytona/remote-list.js";
import { removeResource } from "./daytona/remove.js";

export { buildSnapshot } from "./daytona/prepared-snapshot.js";
export { conformance, listRemote, probeDaytona as probe, removeResource, removeSnapshot };

/** Options of other backends, and what the service has no place for. */
const NOT_HERE = ["baseDir", "workspace", "mounts", "gitFilters", "gitAlternates"] as const;

/** What a sandbox with a repository keeps. */
export function capabilities(): Capabilities {
  return daytonaCapabilities(true);
}

/** Opens a sandbox at Daytona: a machine of its own, with a clone of `repo` on a new branch. */
export async function createDaytonaSandbox(opts: SandboxOptions = {}): Promise<Sandbox> {
  validateSandboxOptions(opts);
  try {
    opts.signal?.throwIfAborted();
    const account = readAccount(opts);
    checkPossible(opts);
    await reapOnce();
    if (opts.id === undefined) return createSandbox(await create(account, opts), opts);
    return await reopen(opts.id, account, opts);
  } catch (error) {
    const { apiKey } = opts.daytona ?? {};
    const secrets = [apiKey, opts.githubToken].filter((secret) => secret !== undefined);
    const failure = toSandboxError(error, { backend: BACKEND, operation: "open" });
    if (!opts.signal?.aborted) throw redactError(failure, { env: secretVariables(), secrets });
    throw new SandboxError("aborted", "The creation of the sandbox was aborted", {
      ...{ backend: BACKEND, operation: "open", cause: error },
    });
  }
}

export { checkPossible as check, createDaytonaSandbox as open };

function create(account: ReturnType<typeof readAccount>, opts: SandboxOptions): ReturnType<typeof Life.create> {
  const source = opts.repo === undefined ? undefined : readSource(opts.repo);
  const { snapshot, resources, autoStopMinutes, ttlMinutes } = opts.daytona ?? {};
  return Life.create(account, opts, {
    ...{ source, branch: opts.branch, network: opts.network ?? "full", options: keptOptions(opts) },
    machine: {
      ...(snapshot !== undefined && { snapshot }),
      ...(resources !== undefined && { resources }),
      ...(autoStopMinutes !== undefined && { autoStopMinutes }),
      ...(ttlMinutes !== undefined && { ttlMinutes }),
    },
  });
}

async function reopen(id: string, account: ReturnType<typeof readAccount>, given: SandboxOptions): Promise<Sandbox> {
  const record = await claimRecord(id);
  try {
    const plan = record.reopen as Plan;
    const opts = reopenOptions(given, plan.options, { network: plan.network, limits: {}, isolation: "required" });
    const daytona = { ...plan.machine, ...opts.daytona };
    const driver = await Life.reopen(id, account, { ...opts, daytona, keep: opts.keep ?? true }, plan);
    return createSandbox(driver, opts);
  } catch (error) {
    await updateRecord(id, { owner: undefined });
    throw error;
  }
}

/** Enforce or refuse: everything that cannot be kept is an error here, before anything is created. */
function checkPossible(opts: SandboxOptions): void {
  if (opts.repo !== undefined) readSource(opts.repo);
  const { limits } = opts;
  if (limits !== undefined && Object.values(limits).some((value) => value !== undefined)) {
    throw new SandboxError(
      "unsupported",
      `The daytona backend cannot keep limits (${Object.keys(limits).join(", ")})`,
      {
        hint: "the service has sizes in whole cores and GiB: daytona: { resources: { cpu, memory, disk } }",
      },
    );
  }
  assertCapabilities(opts, daytonaCapabilities(true), BACKEND);
  networkSettings(opts.network);
  for (const name of NOT_HERE) {
    if (opts[name] !== undefined) {
      throw new SandboxError("unsupported", `The daytona backend has no ${name}: the sandbox is not on this machine`);
    }
  }
  if (opts.image !== undefined && opts.daytona?.snapshot !== undefined) {
    throw new SandboxError(
      "invalid_argument",
      `Option image ("${opts.image}") does not go together with daytona.snapshot`,
      {
        hint: "choose one of the two",
      },
    );
  }
}

/** Errors of the service may repeat what they were asked with. */
function secretVariables(): Record<string, string> {
  const names = ["DAYTONA_API_KEY", "GITHUB_TOKEN"];
  return Object.fromEntries(names.flatMap((name) => (process.env[name] ? [[name, process.env[name]]] : [])));
}

let reaped: Promise<unknown> | undefined;

/** Removes what dead processes left, the first time this process opens a sandbox. */
async function reapOnce(): Promise<void> {
  // What could not be removed is no reason not to go on: it stays in the ledger, where `listSandboxes` shows it.
  reaped ??= reapRecords(async () => removeResource, { backend: BACKEND }).catch(() => undefined);
  await reaped;
}
