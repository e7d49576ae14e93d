import { join } from "node:path";
import { root } from "./prepare.mjs";
import { run } from "./processes.mjs";
import { runSeparateSuite } from "./separate-suite.mjs";
import { expectSuccess, step } from "./step.mjs";
import { ensureClients } from "./system-parts.mjs";

/**
 * Runs real clients of Debian and npm with a key that is not inside, against a server on this machine, and moves 1 GiB each way. A client that
 * can't be installed is not run, and printed as such.
 */
await runSeparateSuite({
  config: "vitest.egress.config.ts",
  packages: [["other runtimes", join(root, "tests", "runtimes")]],
  async install() {
    await step("clients", ensureClients).catch(() => {});
    await step("client in Rust", compileRust).catch(() => {});
  },
});

/** Compiles it with the crates that Debian has as packages, once for each clone. */
async function compileRust() {
  const folder = join(root, "tests", "egress", "programs", "rust");
  const source = ["source.crates-io.replace-with='debian'", "source.debian.directory='/usr/share/cargo/registry'"];
  const config = source.flatMap((each) => ["--config", each]);
  const target = join(root, "node_modules", ".cache", "glovebox", "rust-client");
  const where = ["--manifest-path", join(folder, "Cargo.toml"), "--target-dir", target];
  const args = ["build", "--offline", ...where, ...config];
  const env = { PATH: "/usr/bin:/bin", HOME: target };
  const result = await run("/usr/bin/cargo", args, { quiet: true, cwd: root, env });
  expectSuccess(result, "cargo build");
  return "compiled";
}
