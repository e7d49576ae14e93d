import { chmodSync, copyFileSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { SandboxOptions } from "../../../src/sandbox/types.js";

const SCRIPT = fileURLToPath(new URL("../../fakes/programs/agent.sh", import.meta.url));

/** Sandbox options that put programs named like the real agents first in PATH; their prompts say what they do. */
export function withFakeAgents(directory: string): Pick<SandboxOptions, "mounts" | "env"> {
  const bin = join(directory, "fake-agents");
  mkdirSync(bin, { recursive: true });
  for (const name of ["claude", "codex", "pi"]) {
    copyFileSync(SCRIPT, join(bin, name));
    chmodSync(join(bin, name), 0o755);
  }
  const target = "/opt/fake-agents";
  const path = [target, dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(":");
  return { mounts: [{ source: bin, target }], env: { PATH: path } };
}
