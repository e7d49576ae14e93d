import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const installed = fileURLToPath(new URL("../../runtimes/node_modules", import.meta.url));
const arch = process.arch === "arm64" ? "aarch64" : process.arch;

/** Another program than this Node that runs JavaScript. */
export interface Runtime {
  readonly name: string;
  readonly program: string;
  /** What comes before the path of a script. */
  readonly args: readonly string[];
  /** What `--version` prints. */
  readonly version: RegExp;
}

/** The next Node. */
export const NODE_24: Runtime = {
  name: "Node 24",
  program: join(installed, `node-linux-${process.arch}`, "bin", "node"),
  args: [],
  version: /^v24\./,
};

/** The runtimes that users have, beside the Node that runs the tests. */
export const RUNTIMES: readonly Runtime[] = [
  NODE_24,
  { name: "Bun", program: join(installed, "@oven", `bun-linux-${arch}`, "bin", "bun"), args: [], version: /^1\./ },
  {
    name: "Deno",
    program: join(installed, "@deno", "linux-x64-glibc", "deno"),
    args: ["run", "-A", "--node-modules-dir=manual"],
    version: /^deno 2\./,
  },
];

/** Why a runtime can't be used here; undefined when it can. */
export function whyNoRuntime(program: string): string | undefined {
  return existsSync(program) ? undefined : "it is not installed: npm install --no-save --prefix tests/runtimes";
}
