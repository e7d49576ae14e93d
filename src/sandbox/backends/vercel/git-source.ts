import { SandboxError } from "../../../../contracts/errors.js";
import { startCommand } from "../../guest.js";
import type { Machine } from "./machine.js";
import type { MachineSource } from "./machines.js";

const PATIENCE = 120_000;

/** The source that the service clones. The token is sent with the request and stored nowhere else. */
export function gitSource(url: string, token: string | undefined): MachineSource {
  return { type: "git", url, ...(token !== undefined && { username: "x-access-token", password: token }) };
}

/** Checks out the branch of a clone, creating it if needed, and removes how it was fetched from its settings. Returns its commit. */
export async function prepareRepository(
  machine: Machine,
  url: string,
  branch: string | undefined,
): Promise<{ url: string; sha: string; branch: string }> {
  if (machine.workDir !== machine.session.cwd) await moveClone(machine);
  await git(machine, ["remote", "set-url", "origin", url]);
  if (branch !== undefined) {
    const exists =
      (await run(machine, ["rev-parse", "--verify", "--quiet", `refs/remotes/origin/${branch}`])).code === 0;
    await git(machine, exists ? ["checkout", branch] : ["checkout", "-b", branch]);
  }
  const sha = await git(machine, ["rev-parse", "HEAD"]);
  return { url, sha, branch: branch ?? (await git(machine, ["rev-parse", "--abbrev-ref", "HEAD"])) };
}

/** `$1` is where the service has cloned to. What else is there may be the user's home. */
const MOVE = `
set -e
mv -- "$1/.git" .git
git reset --quiet --hard
git ls-files -z | (cd "$1" && xargs -0 rm -f --)
`;

/** Moves a clone to the work directory. */
async function moveClone(machine: Machine): Promise<void> {
  const { code, said } = await runIn(machine, ["sh", "-c", MOVE, "sh", machine.session.cwd]);
  if (code !== 0) throw new SandboxError("unavailable", `The clone could not be moved to ${machine.workDir}: ${said}`);
}

async function git(machine: Machine, args: readonly string[]): Promise<string> {
  const { code, said } = await run(machine, args);
  if (code !== 0) throw new SandboxError("unavailable", `git ${args[0]} failed in the machine with ${code}`);
  return said.trim();
}

function run(machine: Machine, args: readonly string[]): Promise<{ code: number; said: string }> {
  return runIn(machine, ["git", ...args]);
}

async function runIn(machine: Machine, argv: readonly string[]): Promise<{ code: number; said: string }> {
  const spec = { argv, cwd: machine.workDir, env: machine.baseEnv, stdin: "none", timeout: PATIENCE } as const;
  const process = await startCommand(machine.channel, spec, "");
  let said = "";
  const drained = [process.stdout, process.stderr].map(async (stream) => {
    for await (const chunk of stream) if (stream === process.stdout) said += Buffer.from(chunk).toString("utf8");
  });
  const { exitCode } = await process.wait();
  await Promise.all(drained);
  return { code: exitCode, said };
}
