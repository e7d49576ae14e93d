import { chmodSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type Bench, createBench, program } from "../support/cli.js";
import { describeUnless } from "../support/describe-unless.js";
import { openTerminals, type TerminalRun, type Terminals } from "../support/terminal.js";

/** How each shell is started without anybody's settings, and made to know the completions. */
const SHELLS = [
  { name: "bash", args: ["--norc", "--noprofile", "-i"], learn: "source <(real completion bash)" },
  {
    name: "zsh",
    args: ["-f", "-i"],
    learn: "autoload -Uz compinit; compinit -u -d .dump; source <(real completion zsh)",
  },
  { name: "fish", args: ["--no-config", "-i"], learn: "real completion fish | source" },
] as const;

let bench: Bench;
let terminals: Terminals;
let kept: string;
beforeAll(async () => {
  bench = createBench();
  terminals = await openTerminals();
  const bin = join(bench.path, "bin");
  mkdirSync(bin);
  mkdirSync(join(bench.path, "only-directory"));
  const write = (name: string, script: string): void => {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  };
  write("real", `exec "${process.execPath}" "${program}" "$@"`);
  // What the completions ask is asked of the real program; what was typed is printed word by word.
  write("glovebox", `case "$2" in --quiet) exec real "$@" ;; esac; printf '<%s>' "$@"; echo`);
  bench.env["PATH"] = `${bin}:${bench.env["PATH"]}`;
  const { stdout } = await bench.run(["exec", "--keep", "--json", "--", "true"]);
  kept = (JSON.parse(stdout) as { sandbox: { id: string } }).sandbox.id;
});
afterAll(async () => {
  await bench.run(["rm", kept]);
  await terminals[Symbol.asyncDispose]();
  bench.remove();
});

/** Types a line up to the key that completes it, sends it, and waits for what the program was then called with. */
async function completes(shell: TerminalRun, from: number, typed: string, words: string): Promise<number> {
  await shell.type(`${typed}\t\r`);
  return await shell.shows(words, from);
}

for (const { name, args, learn } of SHELLS) {
  const path = ["/bin", "/usr/bin", "/usr/local/bin"].map((at) => join(at, name)).find((at) => existsSync(at));
  const reason = path === undefined ? `not run: there is no ${name} (apt-get install ${name})` : undefined;
  describeUnless(reason, `completion typed into ${name}`, {}, () => {
    it("completes verbs, flags, their values, operands, sandboxes and paths", async () => {
      const env = { ...bench.env, TERM: "xterm", PS1: "$ " };
      const shell = await terminals.run([path ?? "", ...args], env, { cols: 200, rows: 50 });
      // Split, so that the echo of the line is not what is waited for.
      await shell.type(`cd '${bench.path}'; ${learn}; echo REA''DY\r`);
      let at = await shell.shows("READY");
      // Of a directory's name, zsh takes the slash off that it put there.
      const lines: [typed: string, words: string][] = [
        ["glovebox vers", "<version>"],
        ["glovebox exec --netw", "<exec><--network>"],
        ["glovebox exec --workspace ov", "<exec><--workspace><overlay>"],
        ["glovebox exec -b dag", "<exec><-b><dagger>"],
        ["glovebox exec --backend=dag", "<exec><--backend=dagger>"],
        ["glovebox exec --keep --base-dir=only-d", "<exec><--keep><--base-dir=only-directory"],
        [`glovebox rm --json ${kept.slice(0, 6)}`, `<rm><--json><${kept}>`],
        ["glovebox completion fi", "<completion><fish>"],
        ["glovebox help compl", "<help><completion>"],
        [`glovebox rm ${kept.slice(0, 6)}`, `<rm><${kept}>`],
        [`glovebox exec --id ${kept.slice(0, 6)}`, `<exec><--id><${kept}>`],
        ["glovebox exec --base-dir only-d", "<exec><--base-dir><only-directory"],
        ["glovebox exec --keep -- cat only-d", "<exec><--keep><--><cat><only-directory"],
      ];
      for (const [typed, words] of lines) at = await completes(shell, at, typed, words);
      await shell.type("exit\r");
      expect((await shell.ended).exitCode).toBe(0);
    });
  });
}
