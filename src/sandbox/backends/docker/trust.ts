import { SandboxError } from "../../../../contracts/errors.js";
import type { Trust } from "../../egress.js";
import { GuestFiles } from "../../guest.js";
import type { RunningContainer } from "./container.js";
import type { ContainerPlan } from "./container-config.js";
import { readBundle, writeBundle } from "./system-bundle.js";

/** The folder in a container: in memory that every container has, and that no image of it contains. It is empty whenever the container starts. */
export const TRUST_FOLDER = "/dev/shm/glovebox";

/** Refuses an authority for a container that shares its memory with the machine. */
export function checkTrust({ unsafe }: ContainerPlan, trust: Trust | undefined): void {
  if (trust === undefined || unsafe?.hostIpc !== true) return;
  throw new SandboxError(
    "unsupported",
    "The docker backend can't enforce docker.unsafe.hostIpc with hosts whose TLS ends at the proxy",
    {
      hint: "leave docker.unsafe.hostIpc out: /dev/shm would be the machine's",
    },
  );
}

/**
 * Makes programs in a container trust an authority: by files of their own, and by an addition to the container's bundle. `still` runs work of the engine
 * while no program runs that could lead it elsewhere. Absent: nothing but us runs there yet.
 */
export async function installTrust(
  container: RunningContainer,
  trust: Trust,
  still: <T>(work: () => Promise<T>) => Promise<T> = (work) => work(),
): Promise<void> {
  const bundle = await still(() => readBundle(container));
  const files = new GuestFiles(container.channel, (path) => path).anywhere();
  for (const [name, content] of trust.files(bundle?.text)) await files.write(`${TRUST_FOLDER}/${name}`, content, 0o644);
  if (bundle !== undefined) await still(() => writeBundle(container, bundle, trust.authority.certificate));
}

/** Removes the addition to the bundle of a container, which may have stopped. */
export async function removeTrust(container: Pick<RunningContainer, "engine" | "id">): Promise<void> {
  const bundle = await readBundle(container);
  if (bundle !== undefined) await writeBundle(container, bundle);
}

/** Runs `save` while the files of a container have nothing of an authority. */
export async function withoutTrust<T>(
  container: RunningContainer,
  trust: Trust | undefined,
  save: () => Promise<T>,
): Promise<T> {
  if (trust === undefined) return await save();
  await removeTrust(container);
  try {
    return await save();
  } finally {
    const bundle = await readBundle(container);
    if (bundle !== undefined) await writeBundle(container, bundle, trust.authority.certificate);
  }
}
