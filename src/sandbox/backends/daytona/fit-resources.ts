import { SandboxError } from "../../../../contracts/errors.js";
import type { RemoteSandbox } from "./client.js";
import type { DaytonaOptions } from "./daytona-options.js";
import { isPassing, toFailure } from "./failure.js";

/** A size in whole cores and GiB; what is absent is left as it is. */
export type Resources = NonNullable<DaytonaOptions["resources"]>;

/** Gives a machine the size that was asked for, or says what the service has against it. */
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

/** The service's no to a size: what an organisation may have is no wrong argument. */
export function refusedSize(error: unknown, asked: Resources): SandboxError {
  const failure = toFailure(error, `daytona.resources ${describe(asked)}`);
  if (isPassing(error)) return failure;
  return new SandboxError("unsupported", failure.message, {
    cause: error,
    hint: "a running machine only grows; daytona-small, -medium and -large, or an image, begin with another size",
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
