import { execFile } from "node:child_process";
import { chownSync, cpSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { type BuildOptions, buildSync } from "esbuild";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { installPackage, whyNoPackage } from "../support/run/installed-package.js";
import { SET_UP_LIMIT } from "../support/run/set-up-limit.js";

const PROGRAM = `
import { openSandbox, setGuestPath } from "glovebox";
async function main(): Promise<void> {
  const [guest] = process.argv.slice(2);
  if (guest !== undefined) setGuestPath(guest);
  const sandbox = await openSandbox({ backend: "local" });
  const { stdout } = await sandbox.exec({ argv: ["echo", "from the bundle"] }).finally(() => sandbox.teardown());
  console.log(stdout.trim());
}
main().catch(({ code, message, hint }) => console.log(JSON.stringify({ code, message, hint })));
`;

let place: string;
beforeAll(() => {
  const reason = whyNoPackage();
  if (reason !== undefined) throw new Error(reason);
  place = realpathSync(mkdtempSync(join(tmpdir(), "glovebox-bundle-")));
  const app = join(place, "app");
  mkdirSync(app);
  writeFileSync(join(app, "package.json"), JSON.stringify({ name: "app", version: "7.7.7" }));
  writeFileSync(join(app, "main.ts"), PROGRAM);
  cpSync(join(installPackage().place, "node_modules"), join(app, "node_modules"), { recursive: true });
  const common: BuildOptions = { entryPoints: [join(app, "main.ts")], bundle: true, platform: "node" };
  for (const [format, extension] of [
    ["esm", "mjs"],
    ["cjs", "cjs"],
  ] as const) {
    const { warnings } = buildSync({ ...common, format, outfile: join(app, "dist", `main.${extension}`) });
    expect(warnings).toEqual([]);
  }
}, SET_UP_LIMIT);
afterAll(() => rmSync(place, { recursive: true, force: true }));

async function run(program: string, args: string[] = [], env: NodeJS.ProcessEnv = {}): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], {
    cwd: place,
    env: { ...process.env, ...env },
  });
  return stdout.trim();
}

describe.each(["main.mjs", "main.cjs"])("an app bundled by esbuild to %s", (name) => {
  it("works beside the package that is installed", async ({ skip }) => {
    if (process.platform !== "linux") skip("the local backend is confined on Linux only");
    expect(await run(join(place, "app", "dist", name))).toBe("from the bundle");
  });

  it("does not run what another user put beside it", async ({ skip }) => {
    if (process.getuid?.() !== 0) skip("only root can give files away");
    const beside = join(place, "app", "node_modules", "glovebox");
    chownSync(beside, 4242, 4242);
    try {
      expect(JSON.parse(await run(join(place, "app", "dist", name)))).toMatchObject({ code: "missing_dependency" });
    } finally {
      chownSync(beside, 0, 0);
    }
  });

  it("says without the package which line to add, and works with that line", async ({ skip }) => {
    if (process.platform !== "linux") skip("the local backend is confined on Linux only");
    const alone = join(place, `alone-${name}`);
    mkdirSync(alone);
    renameSync(join(place, "app", "dist", name), join(alone, name));
    const program = join(alone, name);
    const { code, hint } = JSON.parse(await run(program)) as { code: string; hint: string };
    expect(code).toBe("missing_dependency");
    const [, folder = ""] =
      /^copy (\S+) and add the line setGuestPath\("[^"]+"\), or set GLOVEBOX_GUEST to it;/.exec(hint) ?? [];
    const copy = join(alone, "guest");
    cpSync(join(place, "app", folder), copy, { recursive: true });
    expect(await run(program, [copy])).toBe("from the bundle");
    expect(await run(program, [], { GLOVEBOX_GUEST: copy })).toBe("from the bundle");
    expect(JSON.parse(await run(program, ["guest"]))).toMatchObject({ code: "invalid_argument" });
  });
});
