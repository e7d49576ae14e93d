import { SandboxError } from "../../../../contracts/errors.js";
import type { RemoteSandbox } from "./client.js";
import type { DaytonaOptions } from "./daytona-options.js";
import { isPassing, toFailure } from "./failure.js";

/** A size in whole cores and GiB. An absent field is left as it is. */
export type Resources = NonNullable<DaytonaOptions["resources"]>;

/** Gives a machine the requested size, or throws with the service's reason. */
export async function fitResources(
  remote: RemoteSandbox,
  asked: Resources,
  { seconds }: { seconds: number },
): Promise<void> {
  const change = differing(remote, asked);
  if (Object.keys(change).length === 0) return;
  try {
    // A disk grows only while nothing runs.
    if (change.disk !== undefined) await remote.stop(seconds);
    await remote.resize(change, seconds);
    if (change.disk !== undefined) await remote.start(seconds);
  } catch (error) {
    throw refusedSize(error, change);
  }
  const missed = differing(remote, asked);
  if (Object.keys(missed).length === 0) return;
  throw new SandboxError("unsupported", `Daytona: the sandbox did not get daytona.resources ${describe(missed)}`);
}

/** The service refused a size: a limit of the organisation is not a wrong argument. */
export function refusedSize(error: unknown, asked: Resources): SandboxError {
  const failure = toFailure(error, `daytona.resources ${describe(asked)}`);
  if (isPassing(error)) return failure;
  return new SandboxError("unsupported", failure.message, {
    cause: error,
    hint: "a running machine can only grow; start from daytona-small, -medium or -large, or from an image, to get another size",
  });
}

function differing(remote: RemoteSandbox, asked: Resources): Resources {
  const keys = ["cpu", "memory", "disk"] as const;
  return Object.fromEntries(
    keys.flatMap((key) => (asked[key] === undefined || asked[key] === remote[key] ? [] : [[key, asked[key]]])),
  );
}

function describe(resources: Resources): string {
  const parts = Object.entries(resources).flatMap(([key, value]) => (value === undefined ? [] : [`${key} ${value}`]));
  return `(${parts.join(", ")})`;
}
