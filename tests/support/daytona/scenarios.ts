import { expect } from "vitest";
import type { Sandbox, SandboxOptions } from "../../../src/sandbox/types.js";
import { listSandboxes } from "../../../src/sandbox.js";

/** Where the scenarios are played: a stand-in for the service, or the service. */
export interface Stage {
  readonly repo: string;
  readonly defaultBranch: string;
  readonly githubToken?: string;
  open(opts?: SandboxOptions): Promise<Sandbox>;
}

/** What somebody does with a sandbox at Daytona; none of it needs a service that misbehaves. */
export const scenarios: Readonly<Record<string, (stage: Stage) => Promise<void>>> = {
  "a repository from its clone to its end": async ({ open, repo, defaultBranch, githubToken }) => {
    const branch = "glovebox-scenario";
    const sandbox = await open({ repo, branch, ...(githubToken !== undefined && { githubToken }) });
    try {
      const { exitCode, stdout } = await sandbox.exec({
        argv: ["echo", "hello"],
        cwd: sandbox.workDir,
        timeout: 10_000,
      });
      expect([exitCode, stdout]).toEqual([0, "hello\n"]);
      expect((await sandbox.shell("git branch --show-current")).stdout).toBe(`${branch}\n`);
      await sandbox.uploadFiles([{ path: "new/test.txt", content: "by a scenario", mode: 0o600 }]);
      expect(await sandbox.snapshot()).toMatch(/^snapshot-/);
      expect((await sandbox.changes()).files).toEqual([{ path: "new/test.txt", status: "added" }]);
      expect(await sandbox.defaultBranch()).toBe(defaultBranch);
      await using fork = await sandbox.fork();
      expect((await fork.shell("git branch --show-current; cat new/test.txt")).stdout).toBe(
        `${branch}-fork-1\nby a scenario`,
      );
    } finally {
      await sandbox.teardown();
    }
    expect((await listSandboxes()).map(({ id }) => id)).not.toContain(sandbox.id);
  },

  "scripts that end the shell, a deadline, and what has left its session": async ({ open }) => {
    await using sandbox = await open();
    for (const [script, code] of [
      ["exit 3", 3] as const,
      ["set -e; false", 1] as const,
      ["kill -9 $$", 137] as const,
    ]) {
      expect([script, (await sandbox.shell(script)).exitCode]).toEqual([script, code]);
    }
    const late = await sandbox.shell("setsid sleep 4321 & echo $! > pid; echo begun; sleep 60", { timeout: 2_000 });
    expect(late).toMatchObject({ timedOut: true, exitCode: 137, stdout: "begun\n" });
    expect((await sandbox.shell("kill -0 $(cat pid)")).stderr).toMatch(/no such process/i);
  },

  "sizes are had, or refused with a reason": async ({ open }) => {
    const made = await open({ daytona: { resources: { cpu: 3 } } }).catch((error: unknown) => error);
    if (made instanceof Error) expect(made).toMatchObject({ code: "unsupported" });
    else await (made as Sandbox).teardown();
  },

  "no network, or a refusal with a reason": async ({ open }) => {
    const made = await open({ network: "none" }).catch((error: unknown) => error);
    if (made instanceof Error) {
      expect(made).toMatchObject({ code: "unsupported" });
      return;
    }
    await using sandbox = made as Sandbox;
    const reach = { argv: ["bash", "-c", "exec 3<>/dev/tcp/1.1.1.1/443"], timeout: 10_000 };
    expect((await sandbox.exec(reach)).exitCode).not.toBe(0);
  },
};
