import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TERMINAL_RESET } from "../../src/cli/terminal/raw-terminal.js";
import { type Bench, createBench, program } from "../support/cli.js";
import { descendants } from "../support/processes/descendants.js";
import { readQuietly } from "../support/processes/token-watch.js";
import { createRepository } from "../support/scratch.js";
import { openTerminals, type TerminalRun, type Terminals } from "../support/terminal.js";

let bench: Bench;
let terminals: Terminals;
beforeAll(async () => {
  bench = createBench();
  terminals = await openTerminals();
});
afterAll(async () => {
  await terminals[Symbol.asyncDispose]();
  bench.remove();
});

const glovebox = (args: readonly string[], env: Record<string, string> = {}): Promise<TerminalRun> =>
  terminals.run([process.execPath, program, ...args], { ...bench.env, TERM: "xterm", ...env });

/** Prints how the terminal is set, runs a command on it, and prints the settings again. */
const around = (args: readonly string[]): Promise<TerminalRun> => {
  const script = 'stty -a; echo "=== before"; "$@"; code=$?; echo "=== after $code"; stty -a';
  return terminals.run(["sh", "-c", script, "sh", process.execPath, program, ...args], { ...bench.env, TERM: "xterm" });
};

const settings = (output: string): [string | undefined, string | undefined] => [
  output
    .split("=== before")[0]
    ?.replace(/^.*(?=speed)/s, "")
    .trim(),
  /=== after \d+\r\n(.*)$/s.exec(output)?.[1]?.trim(),
];

const HOSTILE =
  "\\033]0;owned\\007\\033]52;c;eA==\\007\\033[2J\\302\\2332J\\2332J\\033P+q\\033\\\\ok\\rno\\b\\342\\200\\256x\\n";

describe("a terminal", () => {
  it("is not driven by what comes from inside, on either stream", async () => {
    for (const redirect of ["", ">&2"]) {
      const { output, exitCode } = await (await glovebox(["exec", "--", "sh", "-c", `printf '${HOSTILE}' ${redirect}`]))
        .ended;
      expect(exitCode).toBe(0);
      expect(output).toBe(
        "\\x1b]0;owned\\x07\\x1b]52;c;eA==\\x07\\x1b[2J\\u009b2J\\x9b2J\\x1bP+q\\x1b\\ok\\rno\\b\\u202ex\r\n",
      );
    }
  });

  it("shows the colours of a command, ends them, and shows them as text where colours are off", async () => {
    const script = "printf '\\033[1;31mred\\033[2J\\n'";
    const { output } = await (await glovebox(["exec", "--", "sh", "-c", script])).ended;
    expect(output).toBe("\x1b[1;31mred\\x1b[2J\r\n\x1b[0m");
    for (const env of [{ NO_COLOR: "1" }, { TERM: "dumb" }]) {
      const plain = await (await glovebox(["exec", "--", "sh", "-c", script], env)).ended;
      expect(plain.output).toBe("\\x1b[1;31mred\\x1b[2J\r\n");
    }
  });

  it("is asked before rm --all, where anything but yes is no", async () => {
    const { stdout } = await bench.run(["exec", "--json", "--keep", "--", "true"]);
    const { id } = (JSON.parse(stdout) as { sandbox: { id: string } }).sandbox;
    const answer = async (keys: string): Promise<string> => {
      const run = await glovebox(["rm", "--all"]);
      await run.shows("Remove 1 kept sandbox with");
      await run.type(keys);
      const { exitCode, output } = await run.ended;
      return `${exitCode} ${output.includes(id)}`;
    };
    expect(await answer("\n")).toBe("1 false");
    expect(await answer("no\n")).toBe("1 false");
    expect(await answer("\x03")).toBe("130 false");
    expect(await answer("y\n")).toBe("0 true");
  });

  it("is not driven by a patch, nor by the name of a file in it", async () => {
    const repo = createRepository(join(bench.path, "repo"));
    const script = `printf '${HOSTILE}' > a.txt; printf x > "$(printf 'name\\033]0;named\\007')"`;
    const { stdout } = await bench.run(["exec", "--json", "--keep", "--repo", repo, "--", "sh", "-c", script]);
    const { id } = (JSON.parse(stdout) as { sandbox: { id: string } }).sandbox;
    for (const how of [[], ["--stat"], ["--name-status"]]) {
      const { output, exitCode } = await (await glovebox(["diff", id, ...how])).ended;
      expect(exitCode).toBe(0);
      const active = ["\x1b]", "\x1bP", "\x1b[2J\u009b", "\x07", "\u202e", "\u009b"];
      expect(active.filter((text) => output.includes(text))).toEqual([]);
      expect(output).toContain("name\\");
    }
    const { bytes } = await bench.run(["diff", id]);
    expect(bytes.includes("\x1b]0;owned\x07")).toBe(true);
    await bench.run(["rm", id]);
  });

  it("is not driven by where a sandbox is, nor by what the environment or an error names", async () => {
    const name = "base\u001b]0;named\u0007\u202e\u009b2J\nx";
    mkdirSync(join(bench.path, name));
    const kept = await bench.run(["exec", "--json", "--keep", "--base-dir", name, "--", "true"]);
    const { id } = (JSON.parse(kept.stdout) as { sandbox: { id: string } }).sandbox;
    const shown = await Promise.all([
      glovebox(["ls"]),
      glovebox(["doctor"], { GLOVEBOX_BACKEND: name }),
      glovebox(["exec", "--base-dir", `${name}y`, "--", "true"], { GLOVEBOX_DEBUG: "1" }),
    ]);
    for (const run of shown) {
      const { output } = await run.ended;
      expect(["\x1b]", "\x07", "\u202e", "\u009b"].filter((text) => output.includes(text))).toEqual([]);
      expect(output).toContain("base\\x1b]0;named");
    }
    expect((await bench.run(["ls"])).stdout.split("\n")).toHaveLength(3);
    await bench.run(["rm", id]);
  });

  it("gets the bytes as they are with --raw", async () => {
    const { output } = await (await glovebox(["exec", "--raw", "--", "printf", "\\033[1mbold\\033[0m"])).ended;
    expect(output).toBe("\x1b[1mbold\x1b[0m");
  });

  it("gets errors in colour, without them by NO_COLOR, and nothing that a name could smuggle in", async () => {
    const coloured = await (await glovebox(["exec", "--id", "nothere", "--", "true"])).ended;
    expect(coloured.output).toContain("\x1b[31mglovebox:\x1b[39m No kept sandbox");
    const plain = await (await glovebox(["frob\x1b[2J\u202e"], { NO_COLOR: "1" })).ended;
    expect(plain.output).toBe(
      'glovebox: unknown verb "frob\\x1b[2J\\u202e"\r\nhint: glovebox --help lists the verbs\r\n',
    );
  });

  it("shows what is waited for once that takes over a second, and takes it away", async () => {
    const slow = join(bench.path, "slow.mjs");
    const module = `export const backend = {
      name: "slow",
      capabilities: () => ({ isolation: "remote", killTree: "best-effort", network: ["full"], limits: [], snapshot: "none",
        fork: "none", pty: false, user: false, ports: false, git: false }),
      create: () => new Promise((_, no) => setTimeout(() => no(new Error("too slow")), 1500)),
      removeResource: async () => undefined,
    };`;
    writeFileSync(slow, module);
    const { output, exitCode } = await (await glovebox(["exec", "--backend", slow, "--", "true"])).ended;
    expect(exitCode).toBe(1);
    expect(output.split("\r\x1b[2K")[1]).toMatch(/^. opening the sandbox \(1 s\)/u);
    expect(output.split("\r\x1b[2K").at(-1)).toContain("too slow");
  });

  it("a Ctrl-C ends exec in order: the command gets the signal, exit 130, nothing left", async () => {
    const run = await glovebox([
      "exec",
      "--",
      "sh",
      "-c",
      'trap "echo interrupted; exit 9" INT; echo ready; while :; do sleep 0.05; done',
    ]);
    await run.shows("ready");
    await run.type("\x03");
    const { output, exitCode } = await run.ended;
    expect(output).toContain("interrupted\r\n");
    expect(exitCode).toBe(130);
    expect((await bench.run(["ls", "--json"])).stdout).toBe("[]\n");
  });
});

describe("glovebox shell", () => {
  it("is a terminal inside that follows the size of the one outside", async () => {
    const script = 'trap "stty size; exit 5" WINCH; tty; stty size; echo $TERM $((1+1)); while :; do sleep 0.05; done';
    const run = await glovebox(["shell", "--", "sh", "-c", script], { TERM: "vt100" });
    let at = await run.shows("/dev/pts/");
    at = await run.shows("24 80\r\n", at);
    await run.shows("vt100 2\r\n", at);
    await run.process.resize?.(100, 30);
    const { exitCode, output } = await run.ended;
    expect(output).toContain("2\r\n30 100\r\n");
    expect(exitCode).toBe(5);
    expect(output.endsWith(TERMINAL_RESET)).toBe(true);
  });

  it.each([
    ["its end", "exit 3\n", undefined, 3],
    ["SIGTERM", "", "SIGTERM", 143],
    ["SIGHUP", "", "SIGHUP", 129],
    ["SIGINT", "", "SIGINT", 130],
  ] as const)("gives the terminal back as it was at %s", async (_, keys, signal, code) => {
    const run = await around([
      "shell",
      "--",
      "sh",
      "-c",
      "printf '\\033[?1049h\\033[?1000h\\033[31m'; echo up-$((1+1)); exec sh",
    ]);
    await run.shows("up-2");
    if (signal === undefined) await run.type(keys);
    else signalShell(signal);
    const { output } = await run.ended;
    expect(output).toContain(`=== after ${code}\r\n`);
    expect(output).toContain(TERMINAL_RESET);
    const [before, after] = settings(output);
    expect(before).toMatch(/speed .* icanon/s);
    expect(after).toBe(before);
  });

  it("lends it back while it is stopped, and takes it again when it goes on", async () => {
    const run = await glovebox(["shell", "--", "sh", "-c", "echo up-$((1+1)); read key; echo got-$key"]);
    await run.shows("up-2");
    signalShell("SIGTSTP");
    const at = await run.shows(TERMINAL_RESET);
    await stopped();
    signalShell("SIGCONT");
    await run.type("x\n");
    await run.shows("got-x", at);
    expect((await run.ended).exitCode).toBe(0);
  });

  it("gives it back also when it is ended twice at once", async () => {
    const run = await around([
      "shell",
      "--",
      "sh",
      "-c",
      'trap "" INT TERM HUP; echo up-$((1+1)); while :; do sleep 0.05; done',
    ]);
    await run.shows("up-2");
    const twice = setInterval(() => signalShell("SIGTERM"), 50);
    await run.shows("=== after 143\r\n");
    clearInterval(twice);
    const { output } = await run.ended;
    expect(output).toContain(TERMINAL_RESET);
    const [before, after] = settings(output);
    expect(after).toBe(before);
    expect((await bench.run(["reap"])).code).toBe(0);
  });
});

/** Sends a signal to the `glovebox shell` of this file. */
function signalShell(signal: NodeJS.Signals): void {
  for (const pid of shells()) {
    try {
      process.kill(pid, signal);
    } catch (error) {
      // It ended while it was looked for.
      expect(error).toMatchObject({ code: "ESRCH" });
    }
  }
}

/** Waits until the shell stands still. */
async function stopped(): Promise<void> {
  await expect.poll(() => shells().filter((pid) => !/\) T /.test(readQuietly(`/proc/${pid}/stat`)))).toEqual([]);
}

function shells(): number[] {
  return descendants(process.pid).filter((pid) => {
    const line = readQuietly(`/proc/${pid}/cmdline`).split("\0");
    return line[0] === process.execPath && line[1] === program && line[2] === "shell";
  });
}
