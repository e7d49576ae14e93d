import { cpSync, existsSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { runtimeDir } from "../../../../src/machine/home.js";
import { listSandboxes, reap } from "../../../../src/sandbox.js";
import { useDaggerPlace } from "../../../support/dagger/place.js";
import { until } from "../../../support/guest/plain-guest.js";
import { type Child, compileSources, startChild } from "../../../support/run/compiled.js";

const place = useDaggerPlace();
let compiled: ReturnType<typeof compileSources>;
beforeAll(() => {
  compiled = compileSources();
  const root = join(import.meta.dirname, "../../../..");
  for (const name of ["node_modules", "guest"]) symlinkSync(join(root, name), join(compiled.directory, name));
});
afterAll(() => compiled.remove());

function start(directory: string, script: string, more: object = {}): { child: Child; log: string } {
  const log = join(place.scratch.path, "cli.log");
  const cli = place.fakeCli("dagger", `log=${log}\n${script}`);
  const env = { DAGGER_SESSION_PORT: "", DAGGER_SESSION_TOKEN: "" };
  return { child: startChild(directory, "hold-dagger.mjs", [JSON.stringify({ dagger: { cli, ...more } })], env), log };
}

describe("a process of its own", () => {
  test("is not ended by a dagger program that fails", async () => {
    // It never comes to the package, which takes seconds to load.
    const { child } = start(compiled.directory, "echo boom >&2; exit 1", { sdk: {} });
    expect(JSON.parse(await child.line())).toMatchObject({
      code: "unavailable",
      message: expect.stringMatching(/boom/),
    });
    expect(await child.line()).toBe("still here");
    expect(await child.ended).toMatchObject({ code: 0 });
  });

  test("that is killed takes its session and its commands with it, and reap the record", async () => {
    const session = JSON.stringify({ port: place.engine.port, session_token: place.engine.token });
    const { child, log } = start(compiled.directory, `echo '${session}'; cat >/dev/null; echo ended >> $log`);
    const { id } = JSON.parse(await child.line()) as { id: string };
    expect((await listSandboxes()).find((info) => info.id === id)).toMatchObject({ backend: "dagger", alive: true });
    child.kill();
    await child.ended;
    await until(() => existsSync(log) && readFileSync(log, "utf8") === "ended\n");
    expect((await reap()).removed).toContain(id);
    expect(existsSync(runtimeDir(id))).toBe(false);
  });

  test("without the package is told how to install it", async () => {
    const bare = join(place.scratch.path, "bare");
    for (const name of ["src", "package.json"]) {
      cpSync(join(compiled.directory, name), join(bare, name), { recursive: true });
    }
    const { child } = start(bare, "exit 1");
    const told = JSON.parse(await child.line()) as Record<string, string>;
    expect(told).toMatchObject({ code: "missing_dependency", hint: "npm install @dagger.io/dagger" });
    await child.ended;
  });
});
