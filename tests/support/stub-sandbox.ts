import { SandboxError, type SandboxErrorCode } from "../../contracts/errors.js";
import type { Capabilities, ExecOptions, ExecResult } from "../../contracts/types.js";
import type { Sandbox } from "../../src/sandbox/types.js";
import type { ConformanceHarness } from "../../src/testing.js";

const EVERYTHING: Capabilities = {
  isolation: "container",
  killTree: "complete",
  network: ["none", "full", "allow"],
  liveNetwork: true,
  networkRules: true,
  limits: ["memory", "cpus", "pids", "disk"],
  snapshot: "consistent",
  fork: "copy",
  pty: true,
  user: true,
  workDir: true,
  paths: ["workdir", "sandbox"],
  combinedOutput: true,
  secrets: true,
  ports: true,
  git: true,
  keep: "all",
};

const ANSWERS: Readonly<Record<string, unknown>> = {
  readFile: null,
  readBytes: null,
  stat: null,
  listDirectory: [],
  processes: [],
  deleteFile: false,
  snapshot: "snapshot",
  exportDirectory: "/nowhere",
  changes: { patch: "", files: [] },
};

/** How a stub answers a call: with nothing, with the emptiest possible answer, or with always the same error. */
export type StubManner = "nothing" | "numb" | SandboxErrorCode;

/** A sandbox that claims everything and does nothing, except that `echo` may work. */
export function stubSandbox(manner: StubManner, canEcho: boolean): Sandbox {
  let isClosed = false;
  const close = async (): Promise<void> => {
    isClosed = true;
  };
  const facts: Record<PropertyKey, unknown> = {
    id: `stub-${Math.random()}`,
    backend: "stub",
    workDir: "/work",
    capabilities: EVERYTHING,
    teardown: close,
    [Symbol.asyncDispose]: close,
    // biome-ignore lint/suspicious/noThenProperty: the stub must not look like a promise to `await`.
    then: undefined,
  };
  return new Proxy(facts, {
    get(target, name) {
      if (name in target) return target[name];
      return async (opts?: ExecOptions) => {
        if (canEcho && isClosed) throw new SandboxError("closed", "the stub is closed");
        if (canEcho && name === "exec" && opts?.argv?.[0] === "echo") return toResult(opts.argv.slice(1).join(" "));
        if (manner === "nothing") return undefined;
        if (manner === "numb") return name === "exec" || name === "shell" ? toResult() : ANSWERS[String(name)];
        throw new SandboxError(manner, "the stub refuses", { backend: "stub", operation: String(name) });
      };
    },
  }) as unknown as Sandbox;
}

/** A harness over stubs that knows all that a harness may know, so that no case is skipped for want of it. */
export function stubHarness(open: () => unknown): ConformanceHarness {
  return {
    backend: "stub",
    open: async () => open() as Sandbox,
    census: async () => [],
    host: { directoryOf: () => "/nowhere", sever: async () => undefined, sharesNetwork: true },
  };
}

function toResult(line?: string): ExecResult {
  const stdout = line === undefined ? "" : `${line}\n`;
  return {
    exitCode: 0,
    stdout,
    stderr: "",
    truncated: { stdout: false, stderr: false },
    bytes: { stdout: stdout.length, stderr: 0 },
    durationMs: 1,
    timedOut: false,
  };
}
