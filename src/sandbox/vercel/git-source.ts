import { startCommand } from "../agent/agent-process.js";
import { SandboxError } from "../errors.js";
import type { Machine } from "./machine.js";
import type { MachineSource } from "./machines.js";

const PATIENCE = 120_000;

/** What the service clones from. The token goes with the request, and into nothing else. */
export function gitSource(url: string, token: string | undefined): MachineSource {
  return { type: "git", url, ...(token !== undefined && { username: "x-access-token", password: token }) };
}

/** Puts a clone onto its branch, made where it does not exist, and takes out of its settings how it was fetched. */
export async function prepareRepository(machine: Machine, url: string, branch: string | undefined): Promise<void> {
  await git(machine, ["remote", "set-url", "origin", url]);
  if (branch === undefined) return;
  const exists = (await run(machine, ["rev-parse", "--verify", "--quiet", `refs/remotes/origin/${branch}`])) === 0;
  await git(machine, exists ? ["checkout", branch] : ["checkout", "-b", branch]);
}

async function git(machine: Machine, args: readonly string[]): Promise<void> {
  const code = await run(machine, args);
  if (code !== 0) throw new SandboxError("unavailable", `git ${args[0]} failed in the machine with ${code}`);
}

async function run(machine: Machine, args: readonly string[]): Promise<number> {
  const argv = ["git", ...args];
  const spec = { argv, cwd: machine.workDir, env: machine.baseEnv, stdin: "none", timeout: PATIENCE } as const;
  const process = await startCommand(machine.channel, spec, "");
  const drained = [process.stdout, process.stderr].map(async (stream) => {
    for await (const _ of stream);
  });
  const { exitCode } = await process.wait();
  await Promise.all(drained);
  return exitCode;
}
