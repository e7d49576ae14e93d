import { execFile } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/commands/all.js";
import { type Bench, createBench, program } from "../support/cli.js";
import { createRepository } from "../support/scratch.js";

const run = promisify(execFile);
let bench: Bench;
beforeAll(() => {
  bench = createBench();
  const bin = join(bench.path, "bin");
  mkdirSync(bin);
  writeFileSync(join(bin, "glovebox"), `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`);
  chmodSync(join(bin, "glovebox"), 0o755);
  bench.env["PATH"] = `${bin}:${bench.env["PATH"]}`;
});
afterAll(() => bench.remove());

const scripts = new Map<string, Promise<string>>();

/** The script for a shell; it does not change, so the program is asked once. */
function scriptOf(shell: string): Promise<string> {
  const known =
    scripts.get(shell) ??
    bench.run(["completion", shell]).then(({ code, stdout, stderr }) => {
      expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
      return stdout;
    });
  scripts.set(shell, known);
  return known;
}

/** What bash offers for the last word. */
async function offered(...words: string[]): Promise<string[]> {
  const script = join(bench.path, "offered.bash");
  if (!existsSync(script)) writeFileSync(script, await scriptOf("bash"));
  const source = `
    source ${script}
    compopt() { :; }
    COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
    _glovebox
    printf '%s\\n' "\${COMPREPLY[@]}"`;
  const { stdout } = await run("bash", ["-c", source, "bash", ...words], { env: bench.env, cwd: bench.path });
  return stdout.split("\n").filter(Boolean);
}

describe("completion", () => {
  it("of bash offers verbs, flags, values and kept sandboxes", async () => {
    expect(await offered("glovebox", "")).toEqual([...COMMANDS.map(({ name }) => name), "--help", "--version"]);
    expect(await offered("glovebox", "exec", "--net")).toEqual(["--network"]);
    expect(await offered("glovebox", "exec", "--network", "")).toEqual(["none", "full", "allow="]);
    expect(await offered("glovebox", "exec", "--backend", "lo")).toEqual(["local"]);
    expect(await offered("glovebox", "exec", "-b", "do")).toEqual(["docker"]);
    expect(await offered("glovebox", "exec", "--base-dir", "bi")).toEqual(["bin"]);
    expect(await offered("glovebox", "exec", "--", "--net")).toEqual([]);
    expect(await offered("glovebox", "completion", "z")).toEqual(["zsh"]);
    const { stdout } = await bench.run(["exec", "--keep", "--json", "--name", "zebra", "--", "true"]);
    const { id } = (JSON.parse(stdout) as { sandbox: { id: string } }).sandbox;
    expect(await offered("glovebox", "rm", id.slice(0, 3))).toEqual([id]);
    expect(await offered("glovebox", "exec", "--id", "")).toEqual([id, "zebra"]);
    expect(await offered("glovebox", "rm", "ze")).toEqual(["zebra"]);
    const snapshot = (await bench.run(["snapshot", id])).stdout.trim();
    expect(await offered("glovebox", "restore", "")).toContain(id);
    expect(await offered("glovebox", "restore", id, id.slice(0, 3))).toEqual([snapshot]);
    expect(await offered("glovebox", "snapshots", "--delete", "")).toEqual([snapshot]);
    expect(await offered("glovebox", "import", id, "bi")).toEqual(["bin"]);
    expect(await offered("glovebox", "export", id, "x", "bi")).toEqual(["bin"]);
    expect(await offered("glovebox", "export", id, "bi")).toEqual([]);
    expect(await offered("glovebox", "exec", "--workspace", "o")).toEqual(["overlay"]);
    await bench.run(["snapshots", "--delete", snapshot]);
    await bench.run(["snapshot", id, "--name", "before"]);
    expect(await offered("glovebox", "snapshots", "--delete", "be")).toEqual(["before"]);
    await bench.run(["snapshots", "--delete", "before"]);
    await bench.run(["rm", id]);
  });

  it("of bash offers the runs that there are, with the sandboxes where both can be meant", async () => {
    const repo = createRepository(join(bench.path, "repo"));
    const { code } = await bench.run(["run", "hello", "--repo", repo, "-m", "hi", "--run-id", "first-run", "--quiet"]);
    expect(code).toBe(0);
    for (const verb of ["resume", "show", "logs", "diff", "apply", "stop", "push", "gc"]) {
      expect(await offered("glovebox", verb, "first"), verb).toEqual(["first-run"]);
    }
    expect(await offered("glovebox", "show", "first-run", "first")).toEqual([]);
    expect(await offered("glovebox", "run", "hello", "--pr-with", "")).toEqual(["rest", "gh"]);
  });

  it.each([
    ["zsh", /^_glovebox_runs\(\) \{\n {2}compadd -- \$\{\(f\)"\$\(glovebox runs --quiet 2>\/dev\/null\)"\}\n\}$/m],
    ["zsh", /^ {4}resume\)\n(?: {6}.*\n| {8}.*\n)*.*'1:operand:_glovebox_runs'/m],
    [
      "fish",
      /^complete -c glovebox -n '__fish_seen_subcommand_from resume.* -a '\(glovebox runs --quiet 2>\/dev\/null\)'$/m,
    ],
    ["fish", /from push.* -a '\(glovebox ls --quiet --names 2>\/dev\/null; glovebox runs --quiet 2>\/dev\/null\)'$/m],
  ])("of %s offers them too: %s", async (shell, line) => {
    expect(await scriptOf(shell)).toMatch(line);
  });

  it.each(["bash", "zsh", "fish"])("of %s is a script that names every verb and flag", async (shell) => {
    const stdout = await scriptOf(shell);
    for (const { name, flags } of COMMANDS) {
      expect(stdout).toContain(name);
      for (const flag of flags) expect(stdout).toContain(shell === "fish" ? `-l ${flag.name}` : `--${flag.name}`);
    }
  });

  it.each(["bash", "zsh", "fish"])("of %s is understood by that shell", async (shell) => {
    const found = ["/bin", "/usr/bin", "/usr/local/bin"]
      .map((path) => join(path, shell))
      .find((path) => existsSync(path));
    const stdout = await scriptOf(shell);
    const script = join(bench.path, `completion.${shell}`);
    writeFileSync(script, stdout);
    // Where the shell is not installed, at least its quotes are closed: all three share that rule.
    if (found === undefined) expect(stdout.replaceAll("\\'", "").split("'").length % 2).toBe(1);
    else expect((await run(found, ["-n", script])).stderr).toBe("");
  });
});
