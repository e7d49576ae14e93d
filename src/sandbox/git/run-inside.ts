import { SandboxError } from "../errors.js";
import type { Driver } from "../types.js";

const TIMEOUT = 600_000;
const MAX_OUTPUT = 4096;

/** Runs a program inside, where it can reach nothing that the inside could not; gives why it failed, if it did. */
export async function runInside(
  driver: Pick<Driver, "start" | "workDir" | "baseEnv">,
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string | undefined> {
  const process = await driver.start({
    argv,
    cwd: driver.workDir,
    env: { ...driver.baseEnv, PATH: "/usr/bin:/bin", ...env },
    stdin: "none",
    timeout: TIMEOUT,
  });
  const [exit, said] = await Promise.all([process.wait(), collect(process.stderr), collect(process.stdout)]);
  return exit.exitCode === 0 ? undefined : said.trim() || `exit code ${exit.exitCode}`;
}

/** As `runInside`; a failure is an error. */
export async function mustRunInside(driver: Parameters<typeof runInside>[0], argv: readonly string[]): Promise<void> {
  const failure = await runInside(driver, argv);
  if (failure !== undefined) throw new SandboxError("internal", `${argv[0] ?? ""} failed inside: ${failure}`);
}

async function collect(stream: AsyncIterable<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of stream) {
    if (text.length < MAX_OUTPUT) text += Buffer.from(chunk).toString("utf8");
  }
  return text.slice(0, MAX_OUTPUT);
}
