import { execFile, execFileSync } from "node:child_process";
import { cpSync, existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { overlayFinding } from "../../../../src/sandbox/backends/local/probe.js";
import { renamesIn } from "../../../../src/sandbox/backends/local/renames.js";
import { createRepository, createScratch, type Scratch } from "../../../support/scratch.js";

const root = fileURLToPath(new URL("../../../..", import.meta.url));
const isRoot = process.getuid?.() === 0;
/** Of nobody: no file and no process on the machine is its own. */
const UID = 61_913;

interface Told {
  renames?: string;
  error?: string;
  content?: string | null;
  /** After `sandbox.rename`: whether the directory is still there, and a file of it where it went. */
  byCall?: [boolean, string | null];
  code?: string;
  message?: string;
}

let scratch: Scratch;
beforeEach(() => {
  scratch = createScratch({ ownEtc: true });
});
afterEach(() => scratch.remove());

/** What a program of this user sees when it renames a directory that was checked out. */
async function renameAs(uid: number | undefined): Promise<Told> {
  const place = scratch.path;
  createRepository(join(place, "repo"));
  for (const part of ["dist", "guest/bin", "package.json", "tests/children/rename-in-overlay.mjs"]) {
    if (!existsSync(join(root, part))) throw new Error(`there is no ${part}: type npm run build first`);
    cpSync(join(root, part), join(place, part), { recursive: true });
  }
  if (uid !== undefined) execFileSync("chown", ["-R", `${uid}:${uid}`, place]);
  const env = { PATH: "/usr/local/bin:/usr/bin:/bin", HOME: place, TMPDIR: place, GLOVEBOX_HOME: join(place, "home") };
  const library = pathToFileURL(join(place, "dist", "src", "index.js")).href;
  const script = join(place, "tests", "children", "rename-in-overlay.mjs");
  const { stdout } = await promisify(execFile)(process.execPath, [script, library, join(place, "repo")], {
    cwd: place,
    env,
    ...(uid !== undefined && { uid, gid: uid }),
  });
  return JSON.parse(stdout) as Told;
}

describe("a checked-out directory in an overlay", () => {
  test("cannot be renamed without privileges, and the capabilities say so; mv works", async ({ skip }) => {
    const told = await renameAs(isRoot ? UID : undefined);
    if (told.code === "no_isolation") skip(`an ordinary user has no sandbox here: ${told.message}`);
    expect(told).toEqual({
      renames: "no-directories-of-the-base",
      error: "EXDEV",
      content: "two\n",
      byCall: [false, "two\n"],
    });
  });

  test("can be renamed by root's sandboxes, and the capabilities say so", async ({ skip }) => {
    if (!isRoot) skip("needs root");
    expect(await renameAs(undefined)).toEqual({
      renames: "all",
      error: "",
      content: "two\n",
      byCall: [false, "two\n"],
    });
  });
});

test("only overlays are concerned", () => {
  expect((["worktree", "copy", "base-dir", "empty"] as const).map((kind) => renamesIn(kind, false))).toEqual(
    Array(4).fill("all"),
  );
});

test("the doctor says where there are none, and what they cannot do", () => {
  const loaded = "nodev\tproc\nnodev\toverlay\n";
  expect(overlayFinding("6.8.0-generic", loaded, true)).toMatchObject({ status: "ok" });
  expect(overlayFinding("6.8.0", loaded, false)).toMatchObject({
    status: "limited",
    fix: "use --workspace copy where that matters",
  });
  expect(overlayFinding("6.8.0", "nodev\tproc\n", true)).toMatchObject({ fix: "sudo modprobe overlay" });
  expect(overlayFinding("5.10.3", loaded, true)).toMatchObject({ status: "limited", fix: "use Linux 5.11 or later" });
});
