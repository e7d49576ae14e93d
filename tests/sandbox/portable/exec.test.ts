import { afterEach, describe, expect, test } from "vitest";
import { SandboxError } from "../../../contracts/errors.js";
import type { ExecResult, SandboxEvent } from "../../../contracts/types.js";
import { createSandbox, type PortableOptions } from "../../../src/sandbox/portable.js";
import type { DriverExit, DriverProcess, Sandbox, StartSpec } from "../../../src/sandbox/types.js";
import { openPlainDriver, PlainDriver } from "../../fixtures/plain-driver.js";
import { isAlive } from "../../fixtures/process-state.js";

const open: Sandbox[] = [];

async function plain(opts: PortableOptions = {}): Promise<{ box: Sandbox; driver: PlainDriver }> {
  const driver = await openPlainDriver();
  const box = createSandbox(driver, opts);
  open.push(box);
  return { box, driver };
}

/** The error that a call rejects with; fails when it does not. */
async function errorOf(call: Promise<unknown>): Promise<SandboxError> {
  const outcome = await call.then(
    (value) => ({ value }),
    (error: unknown) => ({ error }),
  );
  if (!("error" in outcome)) throw new Error(`expected an error, got ${JSON.stringify(outcome.value)}`);
  expect(outcome.error).toBeInstanceOf(SandboxError);
  return outcome.error as SandboxError;
}

afterEach(async () => {
  for (const box of open.splice(0)) await box.teardown();
});

describe("running to the end", () => {
  test("argv reaches the program as it is, without a shell", async () => {
    const { box } = await plain();
    const { stdout, exitCode } = await box.exec({ argv: ["printf", "%s\\n", "$(id)", "a b", "*"] });
    expect(exitCode).toBe(0);
    expect(stdout).toBe("$(id)\na b\n*\n");
  });

  test("both streams, the exit code and the sizes are told", async () => {
    const { box } = await plain();
    const result = await box.shell("printf out; printf error >&2; exit 3", { raw: true });
    expect(result).toMatchObject({
      exitCode: 3,
      stdout: "out",
      stderr: "error",
      truncated: { stdout: false, stderr: false },
      bytes: { stdout: 3, stderr: 5 },
      timedOut: false,
    });
    expect(result.signal).toBeUndefined();
    expect(Buffer.from(result.raw?.stdout ?? []).toString()).toBe("out");
    expect(result.durationMs).toBeGreaterThan(0);
  });

  test("without raw no raw bytes are given; a signal is named and 128 more than its number", async () => {
    const { box } = await plain();
    const result = await box.shell("kill -ABRT $$");
    expect(result).toMatchObject({ exitCode: 134, signal: "SIGABRT", timedOut: false });
    expect("raw" in result).toBe(false);
  });

  test("a missing program is 127 with a line on stderr", async () => {
    const { box } = await plain();
    const result = await box.exec({ argv: ["no-such-program"] });
    expect(result.exitCode).toBe(127);
    expect(result.stderr).toContain("no-such-program");
  });

  test("the environment is the driver's, then the sandbox's, then the call's", async () => {
    const { box } = await plain({ env: { A: "sandbox", B: "sandbox" } });
    const { stdout } = await box.shell('echo "$LANG $A $B $HOME"', { env: { B: "call" } });
    expect(stdout).toBe("C.UTF-8 sandbox call \n");
  });

  test("a script that begins like an option is still the script", async () => {
    const { box } = await plain();
    const { stderr, exitCode } = await box.shell("-x; echo never as an option");
    expect(exitCode).toBe(0);
    expect(stderr).toContain("-x");
  });

  test("output over the cap is cut in the middle and still counted", async () => {
    const { box } = await plain({ maxOutput: 10 });
    const result = await box.exec({ argv: ["seq", "1", "1000"] });
    expect(result.truncated).toEqual({ stdout: true, stderr: false });
    expect(result.bytes.stdout).toBe(3893);
    expect(result.stdout).toBe("1\n2\n3\n[... 3883 bytes left out ...]\n1000\n");
    const other = await box.exec({ argv: ["seq", "1", "1000"], maxOutput: 5000 });
    expect(other.truncated.stdout).toBe(false);
  });
});

describe("standard input", () => {
  test("a text larger than any pipe goes through while the output is read", async () => {
    const { box } = await plain();
    const text = "x".repeat(3_000_000);
    const result = await box.exec({ argv: ["cat"], stdin: text, maxOutput: 4_000_000 });
    expect(result.bytes.stdout).toBe(3_000_000);
    expect(result.stdout === text).toBe(true);
  });

  test("bytes and iterables arrive exactly; absent input is empty and closed", async () => {
    const { box, driver } = await plain();
    const bytes = Uint8Array.from({ length: 256 }, (_, index) => index);
    const first = await box.exec({ argv: ["cat"], stdin: bytes, raw: true });
    expect(first.raw?.stdout).toEqual(bytes);
    async function* pieces(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("one ");
      yield Buffer.from("two");
    }
    expect((await box.exec({ argv: ["cat"], stdin: pieces() })).stdout).toBe("one two");
    expect((await box.exec({ argv: ["cat"] })).stdout).toBe("");
    expect(driver.starts.map((spec) => spec.stdin)).toEqual(["pipe", "pipe", "none"]);
  });

  test("a program that stops reading early is fine, and its endless input is let go", async () => {
    const { box } = await plain();
    let released = false;
    async function* endless(): AsyncGenerator<Uint8Array> {
      try {
        for (;;) yield Buffer.alloc(65_536, 0x61);
      } finally {
        released = true;
      }
    }
    const result = await box.exec({ argv: ["head", "-c", "3"], stdin: endless() });
    expect(result).toMatchObject({ exitCode: 0, stdout: "aaa" });
    await new Promise((resolve) => setImmediate(resolve));
    expect(released).toBe(true);
  });

  test("an iterable that fails kills the command and rejects", async () => {
    const { box } = await plain();
    const broken = new Error("source broke");
    async function* failing(): AsyncGenerator<Uint8Array> {
      yield Buffer.from("a");
      throw broken;
    }
    const error = await errorOf(box.exec({ argv: ["sleep", "60"], stdin: failing() }));
    expect(error.code).toBe("aborted");
    expect(error.cause).toBe(broken);
    const text = (async function* () {
      yield "text" as unknown as Uint8Array;
    })();
    expect((await errorOf(box.exec({ argv: ["sleep", "60"], stdin: text }))).code).toBe("invalid_argument");
  });
});

describe("deadlines", () => {
  test("the tree is killed at the deadline and the partial output is kept", async () => {
    const { box } = await plain();
    const result = await box.shell("echo $$; sleep 60 & echo $!; wait", { timeout: 2_000 });
    expect(result).toMatchObject({ exitCode: 137, signal: "SIGKILL", timedOut: true });
    const pids = result.stdout.trim().split("\n").map(Number);
    expect(pids).toHaveLength(2);
    for (const pid of pids) expect(isAlive(pid)).toBe(false);
    expect(result.durationMs).toBeLessThan(20_000);
  });

  test("with a grace SIGTERM comes first; who takes it politely is a timeout all the same", async () => {
    const { box } = await plain();
    const script = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done";
    const result = await box.shell(script, { timeout: 2_000, killGrace: 20_000 });
    expect(result).toMatchObject({ exitCode: 143, timedOut: true });
    expect(result.stdout).toBe("ready\nbye\n");
  });

  test("who ignores SIGTERM is killed after the grace", async () => {
    const { box } = await plain();
    const script = "trap '' TERM; echo ready; while :; do sleep 0.05; done";
    const result = await box.shell(script, { timeout: 2_000, killGrace: 200 });
    expect(result).toMatchObject({ exitCode: 137, signal: "SIGKILL", timedOut: true, stdout: "ready\n" });
    expect(result.durationMs).toBeGreaterThanOrEqual(2_190);
  });

  test("the default is the sandbox's, and the driver gets a later deadline of its own", async () => {
    const { box, driver } = await plain({ operationTimeout: 200 });
    expect((await box.exec({ argv: ["sleep", "60"] })).timedOut).toBe(true);
    await box.exec({ argv: ["true"], timeout: 1000, killGrace: 50 });
    expect(driver.starts.map((spec) => spec.timeout)).toEqual([700, 1550]);
  });

  test("a consumer that never resolves does not hold the deadline, and nothing written is lost", async () => {
    const { box } = await plain();
    const result = await box.shell("echo one; sleep 0.1; echo two; sleep 60", {
      timeout: 2_000,
      onStdout: () => new Promise<void>(() => undefined),
    });
    expect(result).toMatchObject({ timedOut: true, exitCode: 137, stdout: "one\ntwo\n" });
  });

  test("a consumer still stuck when the command is long done is given up at the deadline", async () => {
    const { box } = await plain();
    const result = await box.exec({
      argv: ["echo", "done"],
      timeout: 2_000,
      onStdout: () => new Promise<void>(() => undefined),
    });
    expect(result).toMatchObject({ timedOut: true, exitCode: 137, stdout: "done\n" });
  });

  test("a driver that never confirms the end, or never starts, is lost; what comes late is killed", async () => {
    const deaf = new DeafDriver("/nowhere");
    const held = new DeafDriver("/nowhere");
    held.hold = true;
    const calls = [deaf, held].map((driver) => errorOf(createSandbox(driver).exec({ argv: ["true"], timeout: 20 })));
    const started = performance.now();
    for (const error of await Promise.all(calls)) {
      expect(error).toMatchObject({ code: "backend_lost", backend: "plain", operation: "exec" });
    }
    expect(performance.now() - started).toBeLessThan(2_020);
    held.letGo();
    await new Promise((resolve) => setImmediate(resolve));
    expect(deaf.signals).toEqual(["SIGKILL"]);
    expect(held.signals).toEqual(["SIGKILL"]);
  });
});

describe("abort", () => {
  test("a signal that is aborted already starts nothing", async () => {
    const { box, driver } = await plain();
    const error = await errorOf(box.exec({ argv: ["true"], signal: AbortSignal.abort() }));
    expect(error).toMatchObject({ code: "aborted", operation: "exec", backend: "plain" });
    expect(driver.starts).toEqual([]);
  });

  test("an abort kills the tree and carries what there was", async () => {
    const { box } = await plain();
    const controller = new AbortController();
    const reason = new Error("enough");
    const call = box.shell("echo $$; sleep 60", {
      signal: controller.signal,
      onStdout: () => controller.abort(reason),
    });
    const error = await errorOf(call);
    expect(error).toMatchObject({ code: "aborted", operation: "shell" });
    expect(error.cause).toBe(reason);
    const partial = error.partial as ExecResult;
    expect(partial).toMatchObject({ exitCode: 137, timedOut: false });
    expect(isAlive(Number(partial.stdout))).toBe(false);
  });
});

describe("consumers", () => {
  test("pieces come in order, and a slow consumer slows the command down", async () => {
    const { box } = await plain();
    let seen = 0;
    let inside = 0;
    let most = 0;
    const result = await box.exec({
      argv: ["head", "-c", "2000000", "/dev/zero"],
      onStdout: async (chunk) => {
        most = Math.max(most, ++inside);
        await new Promise((resolve) => setImmediate(resolve));
        seen += chunk.length;
        inside--;
      },
    });
    expect(seen).toBe(2_000_000);
    expect(most).toBe(1);
    expect(result.exitCode).toBe(0);
  });

  test("a consumer slower than the drain still gets everything", async () => {
    const { box } = await plain();
    let text = "";
    await box.exec({
      argv: ["echo", "slow"],
      onStdout: async (chunk) => {
        await new Promise((resolve) => setTimeout(resolve, 2_600));
        text += Buffer.from(chunk).toString();
      },
    });
    expect(text).toBe("slow\n");
  });

  test("a consumer that throws ends the command", async () => {
    const { box } = await plain();
    const cause = new Error("consumer broke");
    for (const onStderr of [
      () => Promise.reject(cause),
      () => {
        throw cause;
      },
    ]) {
      const error = await errorOf(box.shell("echo $$; echo x >&2; sleep 60", { onStderr }));
      expect(error.code).toBe("aborted");
      expect(error.message).toContain("onStderr");
      expect(error.cause).toBe(cause);
      expect(isAlive(Number((error.partial as ExecResult).stdout))).toBe(false);
    }
  });
});

describe("the allowlist", () => {
  test("programs are compared by their exact name, before anything starts", async () => {
    const { box, driver } = await plain({ allow: ["echo"] });
    expect((await box.exec({ argv: ["echo", "hi"] })).stdout).toBe("hi\n");
    for (const call of [
      box.exec({ argv: ["/bin/echo"] }),
      box.exec({ argv: ["ls"] }),
      box.shell("echo hi"),
      box.spawn({ argv: ["ls"] }),
    ]) {
      expect((await errorOf(call)).code).toBe("command_not_allowed");
    }
    expect((await errorOf(box.shell("x", { shellPath: "bash" }))).message).toContain('"bash"');
    expect(driver.starts).toHaveLength(1);
  });
});

describe("bad input", () => {
  const long = "a".repeat(5000);
  const cases: [name: string, opts: unknown, code: string, text: string][] = [
    ["no options", undefined, "invalid_argument", "options"],
    ["no argv", {}, "invalid_argument", "argv"],
    ["argv as text", { argv: "ls -l" }, "invalid_argument", '"ls -l"'],
    ["empty argv", { argv: [] }, "invalid_argument", "argv"],
    ["empty program", { argv: [""] }, "invalid_argument", "argv[0]"],
    ["a number in argv", { argv: ["a", 5] }, "invalid_argument", "argv[1]"],
    ["NUL in argv", { argv: ["a", "b\0c"] }, "invalid_argument", "argv[1]"],
    ["unknown option", { argv: ["a"], timeOut: 5 }, "invalid_argument", "timeOut"],
    ["NUL in env", { argv: ["a"], env: { A: "x\0" } }, "invalid_argument", "env.A"],
    ["a number in env", { argv: ["a"], env: { A: 5 } }, "invalid_argument", "env.A"],
    ["NUL in cwd", { argv: ["a"], cwd: "a\0" }, "invalid_path", "cwd"],
    ["empty cwd", { argv: ["a"], cwd: "" }, "invalid_path", "cwd"],
    ["null cwd", { argv: ["a"], cwd: null }, "invalid_argument", "cwd"],
    ["long cwd", { argv: ["a"], cwd: long }, "invalid_path", "5000"],
    ["cwd above", { argv: ["a"], cwd: ".." }, "path_confinement", ".. is outside base directory"],
    ["cwd by descriptor", { argv: ["a"], cwd: "/proc/self/fd/7" }, "path_confinement", "/proc/self/fd/7"],
    ["zero timeout", { argv: ["a"], timeout: 0 }, "invalid_argument", "timeout"],
    ["negative timeout", { argv: ["a"], timeout: -5 }, "invalid_argument", "-5"],
    ["NaN timeout", { argv: ["a"], timeout: Number.NaN }, "invalid_argument", "NaN"],
    ["broken timeout", { argv: ["a"], timeout: 1.5 }, "invalid_argument", "1.5"],
    ["endless timeout", { argv: ["a"], timeout: Number.POSITIVE_INFINITY }, "invalid_argument", "Infinity"],
    ["negative grace", { argv: ["a"], killGrace: -1 }, "invalid_argument", "killGrace"],
    ["negative cap", { argv: ["a"], maxOutput: -1 }, "invalid_argument", "maxOutput"],
    ["raw as text", { argv: ["a"], raw: "yes" }, "invalid_argument", "raw"],
    ["stdin as number", { argv: ["a"], stdin: 5 }, "invalid_argument", "stdin"],
    ["no signal", { argv: ["a"], signal: {} }, "invalid_argument", "signal"],
    ["no function", { argv: ["a"], onStdout: true }, "invalid_argument", "onStdout"],
    ["user", { argv: ["a"], user: "root" }, "unsupported", '"root"'],
    ["output", { argv: ["a"], output: "combined" }, "unsupported", "combined"],
    ["huge argv", { argv: ["a", "x".repeat(3_000_000)] }, "limit_exceeded", "argv and env"],
    ["huge env", { argv: ["a"], env: { A: "x".repeat(3_000_000) } }, "limit_exceeded", "argv and env"],
  ];

  test.each(cases)("%s", async (_name, opts, code, text) => {
    const { box, driver } = await plain();
    const error = await errorOf(box.exec(opts as never));
    expect(error).toMatchObject({ code, operation: "exec", backend: "plain" });
    expect(error.message).toContain(text);
    expect(driver.starts).toEqual([]);
  });

  test("an environment key that no shell could use is named in the agreed words", async () => {
    const { box } = await plain();
    const error = await errorOf(box.exec({ argv: ["a"], env: { "A-B": "x" } }));
    expect(error.message).toBe('Invalid env key "A-B" — must match [A-Za-z_][A-Za-z0-9_]*');
  });

  test("an unknown option names the nearest known one", async () => {
    const { box } = await plain();
    expect((await errorOf(box.exec({ argv: ["a"], timeOut: 5 } as never))).hint).toContain('"timeout"');
    const pty = { argv: ["a"], pty: { cols: 80, row: 24 } };
    expect((await errorOf(box.spawn(pty as never))).hint).toContain('"rows"');
  });

  test.each<[name: string, service: unknown, code: string, text: string]>([
    ["a host name that is none", { hostname: "a b", ports: [80] }, "invalid_argument", '"a b"'],
    ["the name of every machine", { hostname: "localhost", ports: [80] }, "invalid_argument", "localhost"],
    ["no host name", { ports: [80] }, "invalid_argument", "service.hostname"],
    ["no port", { hostname: "web", ports: [] }, "invalid_argument", "service.ports"],
    ["a port that is none", { hostname: "web", ports: [0] }, "invalid_argument", "service.ports[0]"],
    ["a service where there are none", { hostname: "web", ports: [80] }, "unsupported", '"web"'],
  ])("%s", async (_name, service, code, text) => {
    const { box, driver } = await plain();
    const error = await errorOf(box.spawn({ argv: ["a"], service } as never));
    expect(error).toMatchObject({ code, operation: "spawn", backend: "plain" });
    expect(error.message).toContain(text);
    expect(driver.starts).toEqual([]);
  });

  test("values of the environment are never shown", async () => {
    const { box } = await plain();
    const error = await errorOf(box.exec({ argv: ["a"], env: { A: ["hush-hush"] } as never }));
    expect(error.message).not.toContain("hush");
  });

  test("shell and spawn are as strict", async () => {
    const { box, driver } = await plain();
    for (const call of [
      box.shell(5 as never),
      box.shell("a\0b"),
      box.shell("a", { argv: ["x"] } as never),
      box.spawn({ argv: ["a"], stdin: "text" as never }),
      box.spawn({ argv: ["a"], maxOutput: 5 } as never),
      box.spawn({ argv: ["a"], pty: { cols: 0, rows: 5 } }),
      box.spawn({ argv: ["a"], pty: { cols: 5 } as never }),
    ]) {
      expect((await errorOf(call)).code).toBe("invalid_argument");
    }
    expect((await errorOf(box.spawn({ argv: ["a"], pty: { cols: 80, rows: 24 } }))).code).toBe("unsupported");
    expect(driver.starts).toEqual([]);
  });
});

describe("events and errors", () => {
  test("what happens is told, without secrets", async () => {
    const events: SandboxEvent[] = [];
    const { box } = await plain({
      env: { DEPLOY_TOKEN: "sandbox-secret-1" },
      githubToken: "ghp_secretsecret",
      onEvent: (event) => {
        events.push(event);
        throw new Error("a listener's failure is its own");
      },
    });
    await box.exec({
      argv: ["echo", "sandbox-secret-1", "call-secret-2", "ghp_secretsecret", "plain"],
      env: { API_KEY: "call-secret-2" },
    });
    await box.teardown();
    expect(events.map((event) => event.type)).toEqual(["created", "exec", "exit", "teardown"]);
    const told = JSON.stringify(events);
    expect(told).toContain("plain");
    for (const secret of ["sandbox-secret-1", "call-secret-2", "ghp_secretsecret"]) expect(told).not.toContain(secret);
    for (const event of events) expect(event).toMatchObject({ sandboxId: box.id, backend: "plain" });
  });

  test("an error of the driver keeps its cause, gets backend and operation, and loses secrets", async () => {
    const driver = await openPlainDriver();
    const cause = Object.assign(new Error("disk with sandbox-secret-1 is full"), { code: "ENOSPC" });
    driver.read = () => Promise.reject(cause);
    const box = createSandbox(driver, { env: { DEPLOY_TOKEN: "sandbox-secret-1" } });
    open.push(box);
    const error = await errorOf(box.readFile("a"));
    expect(error).toMatchObject({ code: "no_space", backend: "plain", operation: "readFile" });
    expect(error.cause).toBe(cause);
    expect(error.message).not.toContain("sandbox-secret-1");
    const own = new SandboxError("conflict", "sandbox-secret-1 is taken");
    expect(own.stack).toContain("sandbox-secret-1");
    driver.read = () => Promise.reject(own);
    expect(await errorOf(box.readFile("a"))).toBe(own);
    expect(`${own.message}${own.stack}`).not.toContain("sandbox-secret-1");
  });

  test("a stream that breaks rejects with the driver's error", async () => {
    const driver = await openPlainDriver();
    const start = driver.start.bind(driver);
    driver.start = async (spec) => {
      const process = await start(spec);
      async function* broken(): AsyncGenerator<Uint8Array> {
        yield Buffer.from("a");
        throw new SandboxError("tampered", "a bad frame came");
      }
      return Object.assign(Object.create(process) as DriverProcess, {
        stdout: broken(),
        stderr: process.stderr,
        kill: (signal: string) => process.kill(signal),
        wait: () => process.wait(),
      });
    };
    const box = createSandbox(driver);
    open.push(box);
    expect((await errorOf(box.exec({ argv: ["sleep", "60"] }))).code).toBe("tampered");
  });
});

/** Starts a process that never ends and hears nothing. */
class DeafDriver extends PlainDriver {
  readonly signals: string[] = [];
  hold = false;
  letGo: () => void = () => undefined;

  override async start(_spec: StartSpec): Promise<DriverProcess> {
    if (this.hold) {
      await new Promise<void>((resolve) => {
        this.letGo = resolve;
      });
    }
    async function* nothing(): AsyncGenerator<Uint8Array> {}
    return {
      stdout: nothing(),
      stderr: nothing(),
      writeStdin: async () => undefined,
      closeStdin: async () => undefined,
      kill: async (signal) => {
        this.signals.push(signal);
      },
      wait: () => new Promise<DriverExit>(() => undefined),
    };
  }
}

describe("a checked command", () => {
  test("that succeeds is a result", async () => {
    const { box } = await plain();
    expect(await box.exec("echo", ["fine"], { check: true })).toMatchObject({ exitCode: 0, stdout: "fine\n" });
  });

  test("names the command, how it ended and its last lines, and hides the result from a log", async () => {
    const { box } = await plain();
    const error = await errorOf(box.exec("sh", ["-c", "seq 1 30 >&2; echo out; exit 9", "a b"], { check: true }));
    expect(error).toMatchObject({ code: "command_failed", operation: "exec", retryable: false });
    const lines = Array.from({ length: 10 }, (_, i) => i + 21).join("\n");
    expect(error.message).toBe(
      `The command "sh -c 'seq 1 30 >&2; echo out; exit 9' 'a b'" failed with exit code 9:\n${lines}`,
    );
    expect(error.hint).toContain("error.result");
    expect(error.result).toMatchObject({ exitCode: 9, stdout: "out\n", bytes: { stdout: 4 } });
    expect(Object.keys(error)).not.toContain("result");
  });

  test("shows stdout where stderr is empty, without what drives a terminal, and at most 2,000 characters", async () => {
    const { box } = await plain();
    const error = await errorOf(box.shell("printf 'x%.0s' $(seq 5000); printf '\\033[2Jend'; exit 1", { check: true }));
    expect(error.message).toMatch(/failed with exit code 1:\nx+\\x1b\[2Jend$/);
    expect(error.message.length).toBeLessThan(2_300);
    expect(error.message).not.toContain("\x1b");
  });

  test("hides a secret that its last lines would have cut in two", async () => {
    const { box } = await plain();
    const env = { A_TOKEN: "first-half-of-it\nsecond-half-of-it" };
    const text = 'echo "$A_TOKEN" >&2; seq 9 >&2; exit 1';
    const error = await errorOf(box.exec("sh", ["-c", text], { env, check: true }));
    expect(error.message).toContain("[REDACTED:A_TOKEN]");
    expect(error.message).not.toContain("half-of-it");
  });

  test("that was aborted is aborted, with what it had written", async () => {
    const { box } = await plain();
    const controller = new AbortController();
    const argv = ["sh", "-c", "echo part; sleep 60"];
    const call = box.exec({ argv, check: true, signal: controller.signal, onStdout: () => controller.abort() });
    const error = await errorOf(call);
    expect(error.code).toBe("aborted");
    expect(error.result).toBeUndefined();
    expect((error.partial as ExecResult).stdout).toBe("part\n");
  });
});
