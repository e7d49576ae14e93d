import { mkdirSync, readFileSync } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { openSession } from "../../../../src/sandbox/backends/dagger/session.js";
import { createDaggerSandbox, dagger } from "../../../../src/sandbox/backends/dagger.js";
import type { SandboxOptions } from "../../../../src/sandbox/types.js";
import { openSandbox } from "../../../../src/sandbox.js";
import { sessionOf, useDaggerPlace } from "../../../support/dagger/place.js";
import { withEnv } from "../../../support/environment.js";
import { expectRefused } from "../../../support/refused.js";

const place = useDaggerPlace();
const { fakeCli } = place;

describe("the session", () => {
  const none = {
    DAGGER_SESSION_PORT: undefined,
    DAGGER_SESSION_TOKEN: undefined,
    _EXPERIMENTAL_DAGGER_CLI_BIN: undefined,
  };

  test("is the one that the environment names", async () => {
    const env = { ...none, DAGGER_SESSION_PORT: String(place.engine.port), DAGGER_SESSION_TOKEN: place.engine.token };
    await withEnv(env, async () => {
      await using sandbox = await openSandbox({ backend: "dagger" });
      expect((await sandbox.exec({ argv: ["pwd"] })).stdout).toBe("/work\n");
      const findings = (await dagger.probe?.()) ?? [];
      expect(findings.find(({ name }) => name === "engine")).toMatchObject({ status: "ok" });
    });
  });

  test("is started by the program, shared, and ended with the last sandbox", async () => {
    const log = join(place.scratch.path, "cli.log");
    const line = JSON.stringify({ port: place.engine.port, session_token: place.engine.token });
    const cli = fakeCli("dagger", `echo "$$ $*" >> ${log}; echo '${line}'; cat >/dev/null; echo ended >> ${log}`);
    await withEnv({ ...none, PATH: `${place.scratch.path}:${process.env["PATH"]}` }, async () => {
      const [one, two] = await Promise.all([createDaggerSandbox({}), createDaggerSandbox({ dagger: { cli } })]);
      await one.teardown();
      expect((await two.exec({ argv: ["echo", "on"] })).stdout).toBe("on\n");
      const started = readFileSync(log, "utf8").trim().split("\n");
      expect(started).toHaveLength(1);
      expect(started[0]).toMatch(/^\d+ session /);
      await two.teardown();
      expect(isAlive(Number(started[0]?.split(" ")[0]))).toBe(false);
    });
  });

  test.each([
    ["ends at once", "echo no engine here >&2; exit 3", ["ended with exit code 3", "no engine here"]],
    ["prints no session", "echo hello; cat", ["printed something that is not a session"]],
    ["prints a port that is none", `echo '{"port":"1","session_token":"t"}'; cat`, ["not a session"]],
  ])("a program that %s is unavailable", async (name, script, words) => {
    const cli = fakeCli(`bad-${name.replaceAll(" ", "-")}`, script);
    await withEnv(none, () => expectRefused(createDaggerSandbox({ dagger: { cli } }), "unavailable", ...words));
  });

  test("without a program it is unavailable, with how to get one", async () => {
    mkdirSync(join(place.scratch.path, "empty"), { recursive: true });
    await withEnv({ ...none, PATH: join(place.scratch.path, "empty") }, async () => {
      await expect(createDaggerSandbox({})).rejects.toMatchObject({
        code: "unavailable",
        hint: expect.stringContaining("docs.dagger.io"),
      });
      expect(((await dagger.probe?.()) ?? []).find(({ name }) => name === "session")).toMatchObject({
        status: "missing",
      });
    });
    await withEnv({ ...none, _EXPERIMENTAL_DAGGER_CLI_BIN: "/no/such/dagger" }, () =>
      expectRefused(createDaggerSandbox({}), "unavailable", "/no/such/dagger", "_EXPERIMENTAL_DAGGER_CLI_BIN"),
    );
  });

  test.each([
    ["a port that is no number", "12a", "token", "invalid_argument", "DAGGER_SESSION_PORT"],
    ["a port that is none", "70000", "token", "invalid_argument", "DAGGER_SESSION_PORT"],
    ["a port without a token", "4000", undefined, "unauthenticated", "DAGGER_SESSION_TOKEN"],
    ["a token without a port", undefined, "token", "unauthenticated", "DAGGER_SESSION_PORT"],
  ])("%s is refused before any request", async (_, port, token, code, word) => {
    const before = place.engine.queries.length;
    const env = { ...none, DAGGER_SESSION_PORT: port, DAGGER_SESSION_TOKEN: token };
    await withEnv(env, () => expectRefused(openSandbox({ backend: "dagger" }), code, word));
    expect(place.engine.queries.length).toBe(before);
  });

  test("who does not know the number of a step gets nothing, and a number is taken once", async () => {
    const session = await openSession({ session: sessionOf(place.engine) });
    const { listener } = session;
    const giveUp = new AbortController();
    const connected = listener.expect("step-1", giveUp.signal);
    const lines = ["wrong step-1\n", "step-1 \n", "step-2\n", "\n", "x".repeat(300), `step-1${"x".repeat(300)}`];
    const refused = await Promise.all(lines.map((line) => say(listener.port, line)));
    expect(refused).toEqual(lines.map(() => "closed"));
    const late = Promise.race([connected.then(() => "taken"), Promise.resolve("waiting")]);
    expect(await late).toBe("waiting");
    giveUp.abort(new Error("enough"));
    await expect(connected).rejects.toThrow("enough");
    expect(await say(listener.port, "step-1\n")).toBe("closed");

    const second = listener.expect("step-3", new AbortController().signal);
    const first = say(listener.port, "step-3\n");
    const taken = await second;
    expect(await say(listener.port, "step-3\n")).toBe("closed");
    taken.destroy();
    expect(await first).toBe("closed");
    await session.close();
  });
});

describe("what cannot be kept is refused before any request", () => {
  test.each<[string, SandboxOptions, string, string[]]>([
    ["no network", { network: "none" }, "unsupported", ['network "none"']],
    ["some network", { network: { allow: ["example.com"] } }, "unsupported", ["network { allow }"]],
    ["memory", { limits: { memory: 1 << 28 } }, "unsupported", ["limits.memory", String(1 << 28)]],
    ["cpus", { limits: { cpus: 1 } }, "unsupported", ["limits.cpus"]],
    ["no repository", { repo: "/no/such/repository" }, "not_found", ["/no/such/repository"]],
    ["a directory", { baseDir: "/tmp" }, "unsupported", ["baseDir"]],
    ["mounts", { mounts: [{ source: "/tmp" }] }, "unsupported", ["mounts"]],
    ["an unknown option", { dagger: { sesion: {} } as never }, "invalid_argument", ['"sesion"']],
    ["a session without a token", { dagger: { session: { port: 1 } as never } }, "invalid_argument", ["session.token"]],
    ["a port that is text", { dagger: { session: { port: "80", token: "t" } as never } }, "invalid_argument", ["port"]],
    [
      "a program and a session",
      { dagger: { cli: "/x", session: { port: 1, token: "t" } } },
      "invalid_argument",
      ["/x"],
    ],
    ["an empty setup", { dagger: { setup: [[]] } }, "invalid_argument", ["setup[0]"]],
    ["a host name that is none", { dagger: { services: { "a b": { image: "x" } } } }, "invalid_argument", ["a b"]],
    [
      "the host name of this process",
      { dagger: { services: { "glovebox-host": { image: "x" } } } },
      "invalid_argument",
      ["glovebox-host"],
    ],
    ["a service without an image", { dagger: { services: { a: {} as never } } }, "invalid_argument", ["a.image"]],
    ["a secret that is a value", { dagger: { secrets: { A: "hunter2hunter2" } } }, "invalid_argument", ["secrets.A"]],
    ["a linger that is negative", { dagger: { linger: -1 } }, "invalid_argument", ["linger"]],
  ])("%s", async (_, opts, code, words) => {
    const before = place.engine.queries.length;
    const given = {
      ...opts,
      dagger: { ...(opts.dagger === undefined ? { session: sessionOf(place.engine) } : opts.dagger) },
    };
    await expectRefused(createDaggerSandbox(given), code, ...words);
    const error = await createDaggerSandbox(given).catch((reason: unknown) => String((reason as Error).message));
    expect(error).not.toContain("hunter2");
    expect(place.engine.queries.length).toBe(before);
  });
});

/** Says something to a port and tells how that was taken. */
function say(port: number, text: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = new Socket();
    socket.on("close", () => resolve("closed")).on("error", () => undefined);
    socket.connect(port, "127.0.0.1", () => socket.write(text));
  });
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
