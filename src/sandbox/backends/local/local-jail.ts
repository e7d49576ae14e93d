import { existsSync } from "node:fs";
import { basename } from "node:path";
import { chooseStage, chooseUser, type JailBind, type JailSpec, syntheticEtc, systemBinds } from "../../jail.js";
import { createMemory } from "./memory.js";
import { prepareEtc } from "./prepared-etc.js";
import { findToolchains, type Toolchains } from "./toolchains.js";

/** The private home in the sandbox. */
export const INSIDE_HOME = "/home/sandbox";
const RESOLVER = "/etc/resolv.conf";
const MB = 1 << 20;
const rememberedToolchains = createMemory<Toolchains>();

/** The jail of a local sandbox. */
export interface LocalJail {
  spec: Omit<JailSpec, "program" | "privileged" | "env">;
  /** The host directory that is its `/etc`, for `recordEtc`. */
  etc: string;
  /** The environment that every command starts from. */
  baseEnv: Record<string, string>;
}

/** Builds a sandbox's jail: the system and its toolchains read-only, private memory, and the given trees. */
export function buildJail(opts: {
  workDir: string;
  trees: readonly JailBind[];
  network: "none" | "full";
  cgroups: readonly string[];
}): LocalJail {
  const system = systemBinds();
  const toolchains = rememberedToolchains(process.env["PATH"] ?? "", () => findToolchains(process.env));
  // Bound separately where it is needed: it changes with the networks that the machine is in.
  const own = opts.network === "full" && existsSync(RESOLVER) ? [{ source: RESOLVER, target: RESOLVER }] : [];
  const etc = prepareEtc(
    syntheticEtc(INSIDE_HOME),
    own.map(({ target }) => basename(target)),
  );
  return {
    etc,
    spec: {
      binds: [...system.binds, { source: etc, target: "/etc" }, ...own, ...toolchains.binds, ...opts.trees],
      symlinks: system.symlinks,
      tmpfs: [
        { path: "/tmp", size: 2048 * MB, mode: 0o1777 },
        { path: "/dev/shm", size: 512 * MB, mode: 0o1777 },
        { path: INSIDE_HOME, size: 2048 * MB, mode: 0o700 },
        { path: "/run", size: 16 * MB, mode: 0o755 },
      ],
      network: opts.network,
      user: chooseUser(),
      stage: chooseStage(),
      cgroups: opts.cgroups,
      cwd: opts.workDir,
    },
    baseEnv: {
      PATH: toolchains.path,
      HOME: INSIDE_HOME,
      USER: "sandbox",
      LANG: "C.UTF-8",
      TMPDIR: "/tmp",
      ...toolchains.env,
    },
  };
}
