import { existsSync } from "node:fs";
import { basename } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import { isWithin } from "../../../machine/system-folders.js";
import { RESOLVER_ADDRESS } from "../../egress.js";
import { chooseStage, chooseUser, type JailBind, type JailSpec, syntheticEtc, systemBinds } from "../../jail.js";
import { INSIDE_HOME, INSIDE_TMP, makeKeptPlaces } from "./kept-places.js";
import { createMemory } from "./memory.js";
import { prepareEtc } from "./prepared-etc.js";
import { findToolchains, type Toolchains } from "./toolchains.js";
import type { PlacedTrust } from "./trust.js";

const RESOLVER = "/etc/resolv.conf";
/** Where a sandbox without a network of its own finds its resolver, if it has a way out; otherwise nobody answers there. */
const OWN_RESOLVER = `nameserver ${RESOLVER_ADDRESS}\n`;
const MB = 1 << 20;
const rememberedToolchains = createMemory<Toolchains>();

/** The jail of a local sandbox. */
export interface LocalJail {
  spec: Omit<JailSpec, "program" | "privileged" | "commandsAreRoot" | "env">;
  /** The host directory that is its `/etc`, for `recordEtc`. */
  etc: string;
  /** The environment that every command starts from. */
  baseEnv: Record<string, string>;
}

function knownToolchains(): Toolchains {
  const { PATH = "", HOME = "" } = process.env;
  return rememberedToolchains(`${PATH}\0${HOME}`, () => findToolchains(process.env));
}

function meets(one: string, other: string): boolean {
  return isWithin(one, other) || isWithin(other, one);
}

/** Refuses a work directory that would hide a toolchain, or be in one, which is read-only. */
export function checkBesideToolchains(workDir: string): void {
  const met = knownToolchains().binds.find(({ target }) => meets(target, workDir));
  if (met === undefined) return;
  throw new SandboxError("invalid_argument", `Invalid workDir "${workDir}" — the programs in ${met.target} need it`, {
    hint: 'name a folder of its own, such as "/workspace"',
  });
}

/** Builds a sandbox's jail: the system and its toolchains read-only, private memory, and the given trees. */
export function buildJail(opts: {
  workDir: string;
  trees: readonly JailBind[];
  /** The directory that the sandbox's home and temporary files are kept in. Absent: they are in memory, and end with the jail. */
  keptIn?: string | undefined;
  network: "none" | "full";
  trust?: PlacedTrust | undefined;
  cgroups: readonly string[];
  processes?: number | undefined;
  through?: JailSpec["through"];
}): LocalJail {
  const system = systemBinds();
  const toolchains = knownToolchains();
  // Bound separately where it is needed: it changes with the networks that the machine is in.
  const own = opts.network === "full" && existsSync(RESOLVER) ? [{ source: RESOLVER, target: RESOLVER }] : [];
  const etc = prepareEtc(
    { ...syntheticEtc(INSIDE_HOME), ...(opts.network === "none" && { "resolv.conf": OWN_RESOLVER }) },
    own.map(({ target }) => basename(target)),
    opts.trust?.etc,
  );
  const made = [{ source: etc, target: "/etc" }, ...own, ...(opts.trust ? [opts.trust.bind] : [])];
  const binds = [...system.binds, ...made, ...toolchains.binds, ...opts.trees];
  const onDisk = opts.keptIn === undefined ? [] : makeKeptPlaces(opts.keptIn, binds);
  return {
    etc,
    spec: {
      binds: [...binds, ...onDisk],
      symlinks: system.symlinks,
      tmpfs: [
        { path: INSIDE_TMP, size: 2048 * MB, mode: 0o1777 },
        { path: "/dev/shm", size: 512 * MB, mode: 0o1777 },
        { path: INSIDE_HOME, size: 2048 * MB, mode: 0o700 },
        { path: "/run", size: 16 * MB, mode: 0o755 },
      ].filter(({ path }) => !onDisk.some(({ target }) => target === path)),
      network: opts.network,
      user: chooseUser(),
      stage: chooseStage(),
      cgroups: opts.cgroups,
      processes: opts.processes,
      through: opts.through,
      cwd: opts.workDir,
    },
    baseEnv: {
      PATH: toolchains.path,
      HOME: INSIDE_HOME,
      USER: "sandbox",
      LANG: "C.UTF-8",
      TMPDIR: INSIDE_TMP,
      ...toolchains.env,
    },
  };
}
