import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { findToolchains } from "./toolchains.js";

/** The environment without isolation: the host's PATH, a home of its own, and none of the host's other variables. */
export function plainEnv(runtime: string): Record<string, string> {
  const home = join(runtime, "home");
  mkdirSync(home, { recursive: true, mode: 0o700 });
  const { path, env } = findToolchains(process.env);
  return { PATH: path, HOME: home, LANG: "C.UTF-8", TMPDIR: "/tmp", ...env };
}
