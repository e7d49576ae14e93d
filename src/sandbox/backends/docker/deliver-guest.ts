import { createHash, randomBytes } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync } from "node:fs";
import { dirname, posix } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import { encodeTarMember, TAR_BLOCK, tarPadding } from "../../../util/tar/tar-encode.js";
import { guestBinary } from "../../guest.js";
import type { Engine } from "./engine/engine.js";
import { EngineError } from "./engine/engine-error.js";
import { CACHE_LABEL, ownerLabels } from "./labels.js";
import { removeContainer } from "./remove-container.js";

/** Where the guest is in a container. */
const FOLDER = "/.glovebox";
export const GUEST_PATH: string = `${FOLDER}/guest`;

/** A mount, as in the engine's API. */
export interface EngineMount {
  Type: "bind" | "volume";
  Source: string;
  Target: string;
  ReadOnly: boolean;
  VolumeOptions?: { NoCopy: boolean };
}

/** Where a package has the program; version 0.1 called it the agent. */
const PROGRAM = /\/(guest|agent)\/bin\/linux-\w+\/glovebox-\1$/;

const ARCHITECTURES: Readonly<Record<string, string>> = {
  amd64: "x64",
  x86_64: "x64",
  arm64: "arm64",
  aarch64: "arm64",
};
const architectures = new WeakMap<Engine, Promise<string>>();
const volumes = new WeakMap<Engine, Promise<string>>();

/** The mount that brings the guest into a container: a file of this machine, or a volume that is filled once. */
export async function guestMount(engine: Engine, image: string, how?: "bind" | "volume"): Promise<EngineMount> {
  const binary = guestBinary(await architectureOf(engine));
  if ((how ?? (isHere(engine) ? "bind" : "volume")) === "bind") {
    return { Type: "bind", Source: binary, Target: GUEST_PATH, ReadOnly: true };
  }
  const volume = await remember(volumes, engine, () => fillVolume(engine, image, binary));
  return { Type: "volume", Source: volume, Target: FOLDER, ReadOnly: true, VolumeOptions: { NoCopy: true } };
}

/** Forgets a volume that somebody has removed, so that the next container gets a new one. */
export function forgetVolume(engine: Engine): void {
  volumes.delete(engine);
}

/** A container mounts the program from where it was at its creation. After an update it may be elsewhere, so it is copied to where it was. */
export async function restoreProgram(
  engine: Engine,
  mounts: readonly { Type: string; Source: string; Destination: string }[],
): Promise<void> {
  const mount = mounts.find(({ Type, Destination }) => Type === "bind" && posix.dirname(Destination) === FOLDER);
  // Nothing but a program of ours is ever written there, whatever the engine says.
  if (mount === undefined || existsSync(mount.Source) || !PROGRAM.test(mount.Source)) return;
  const copy = `${mount.Source}.${process.pid}`;
  try {
    mkdirSync(dirname(copy), { recursive: true });
    copyFileSync(guestBinary(await architectureOf(engine)), copy);
    renameSync(copy, mount.Source);
  } catch (cause) {
    throw new SandboxError("missing_dependency", `The program that the container mounts is gone: ${mount.Source}`, {
      cause,
      hint: "Make that path writable, or install Glovebox there again.",
    });
  }
}

/** An engine behind a socket may still see other files than this process. Then it refuses the mount. */
function isHere({ endpoint }: Engine): boolean {
  return process.platform === "linux" && endpoint.socketPath !== undefined;
}

/** Asks once per engine, and again after a failure. */
function remember(
  known: WeakMap<Engine, Promise<string>>,
  engine: Engine,
  ask: () => Promise<string>,
): Promise<string> {
  const answer = known.get(engine) ?? ask();
  known.set(engine, answer);
  answer.catch(() => known.delete(engine));
  return answer;
}

function architectureOf(engine: Engine): Promise<string> {
  return remember(architectures, engine, () => askArchitecture(engine));
}

async function askArchitecture(engine: Engine): Promise<string> {
  const { Os, Arch } = await engine.call<{ Os?: string; Arch?: string }>("GET", "/version", { timeout: 10_000 });
  const arch = ARCHITECTURES[Arch ?? ""];
  if (Os === "linux" && arch !== undefined) return arch;
  throw new SandboxError(
    "unsupported",
    `The Docker engine at ${engine.endpoint.name} runs ${Os} on ${Arch}, which has no guest`,
  );
}

/** Fills a volume through a container that is never started, which also works with a remote engine. */
async function fillVolume(engine: Engine, image: string, binary: string): Promise<string> {
  const bytes = readFileSync(binary);
  const name = `glovebox-guest-${createHash("sha256").update(bytes).digest("hex").slice(0, 16)}`;
  await engine.call("POST", "/volumes/create", { body: { Name: name, Labels: { [CACHE_LABEL]: "guest" } } });
  const helper = `${name}-${randomBytes(4).toString("hex")}`;
  try {
    await engine.call("POST", "/containers/create", {
      query: { name: helper },
      body: {
        Image: image,
        Entrypoint: [GUEST_PATH],
        Labels: ownerLabels(),
        HostConfig: {
          NetworkMode: "none",
          Mounts: [{ Type: "volume", Source: name, Target: FOLDER, VolumeOptions: { NoCopy: true } }],
        },
      },
    });
    if (!(await isFilled(engine, helper))) {
      await engine.call("PUT", `/containers/${helper}/archive`, { query: { path: FOLDER }, body: archiveOf(bytes) });
    }
  } finally {
    await removeContainer(engine, helper);
  }
  return name;
}

async function isFilled(engine: Engine, container: string): Promise<boolean> {
  try {
    const answer = await engine.stream("HEAD", `/containers/${container}/archive`, { query: { path: GUEST_PATH } });
    answer.resume();
    return true;
  } catch (error) {
    if (error instanceof EngineError && error.status === 404) return false;
    throw error;
  }
}

async function* archiveOf(bytes: Buffer): AsyncGenerator<Uint8Array> {
  yield encodeTarMember({ path: Buffer.from("guest"), type: "file", mode: 0o755, mtime: 0, size: bytes.length });
  yield bytes;
  yield tarPadding(bytes.length);
  yield Buffer.alloc(2 * TAR_BLOCK);
}
