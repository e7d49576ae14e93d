import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { chooseStage, chooseUser } from "./identity.js";
import type { JailBind, JailSpec } from "./jail.js";
import { syntheticEtc, systemBinds } from "./system.js";
import { findToolchains } from "./toolchains.js";

/** The private home inside. */
export const INSIDE_HOME = "/home/sandbox";
const MB = 1 << 20;

/** What a sandbox's walls are made of. */
export interface Walls {
  spec: Omit<JailSpec, "program" | "privileged" | "env">;
  /** The environment that every command starts from. */
  baseEnv: Record<string, string>;
}

/** Puts a sandbox's walls together: the system and its toolchains read-only, private memory, and the given trees. */
export function buildWalls(opts: {
  workDir: string;
  /** Host directory for the files that are made for the inside. */
  runtime: string;
  trees: readonly JailBind[];
  network: "none" | "full";
  cgroups: readonly string[];
}): Walls {
  const system = systemBinds(opts.network);
  const toolchains = findToolchains(process.env);
  const etc = join(opts.runtime, "etc");
  mkdirSync(etc, { recursive: true, mode: 0o755 });
  const made = Object.entries(syntheticEtc(INSIDE_HOME)).map(([name, text]): JailBind => {
    writeFileSync(join(etc, name), text, { mode: 0o644 });
    return { source: join(etc, name), target: `/etc/${name}` };
  });
  return {
    spec: {
      binds: [...system.binds, ...made, ...toolchains.binds, ...opts.trees],
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
