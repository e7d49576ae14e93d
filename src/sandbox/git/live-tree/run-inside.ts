import { SandboxError } from "../../../../contracts/errors.js";
import { readUpTo } from "../../../util/read-up-to.js";
import type { Driver } from "../../types.js";

const TIMEOUT = 600_000;
const MAX_OUTPUT = 4096;

/** How a program runs in a sandbox. */
export interface RunInsideOptions {
  env?: Readonly<Record<string, string>>;
  /** Milliseconds. Default ten minutes. */
  timeout?: number;
  /** Kills it. */
  signal?: AbortSignal | undefined;
}

/** Runs a program in a sandbox, confined like any other; returns the reason if it failed. */
export async function runInside(
  driver: Pick<Driver, "start" | "workDir" | "baseEnv">,
  argv: readonly string[],
  { env = {}, timeout = TIMEOUT, signal }: RunInsideOptions = {},
): Promise<string | undefined> {
  const process = await driver.start({
    argv,
    cwd: driver.workDir,
    env: { ...driver.baseEnv, PATH: "/usr/bin:/bin", ...env },
    stdin: "none",
    timeout,
  });
  const kill = (): void => void process.kill("SIGKILL").catch(() => undefined);
  signal?.addEventListener("abort", kill, { once: true });
  if (signal?.aborted === true) kill();
  const [exit, said] = await Promise.all([
    process.wait(),
    readUpTo(process.stderr, MAX_OUTPUT),
    readUpTo(process.stdout, 0),
  ]).finally(() => signal?.removeEventListener("abort", kill));
  return exit.exitCode === 0 ? undefined : said.bytes.toString("utf8").trim() || `exit code ${exit.exitCode}`;
}

/** As `runInside`, but throws on a failure. */
export async function mustRunInside(driver: Parameters<typeof runInside>[0], argv: readonly string[]): Promise<void> {
  const failure = await runInside(driver, argv);
  if (failure !== undefined) throw new SandboxError("internal", `${argv[0] ?? ""} failed in the sandbox: ${failure}`);
}
