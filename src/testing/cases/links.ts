import { readdir, readFile, writeFile } from "node:fs/promises";
import type { Sandbox } from "../../sandbox/types.js";
import { check, equal, equalBytes, refuses } from "../assert.js";
import { utf8 } from "../bytes.js";
import { makeOutside } from "../outside.js";
import { finishes, pause, script, scriptArgv } from "../script.js";
import type { ConformanceCase } from "../types.js";

/** The least number of tries of a race, and of swaps during them; more tries during the same swaps find nothing new. */
const MIN_TRIES = 100;
const MIN_ROUNDS = 50;
const MAX_TRIES = 4_000;

/** Swaps a file and a link until `stop` exists, and appends a byte to `rounds` each time. `$1` is the directory outside. */
const SWAP_FILE = 'until [ -e stop ]; do ln -sf "$1/canary" x; printf good > g && mv -f g x; printf x >> rounds; done';
/** Swaps a directory and a link in the same way. */
const SWAP_DIRECTORY =
  'until [ -e stop ]; do rm -rf d; ln -s "$1" d; rm -rf d; mkdir -p d; printf good > d/canary; printf x >> rounds; done';

export const linkCases: readonly ConformanceCase[] = [
  {
    id: "links.inside",
    title: "links that stay inside",
    requirement: "Reading, listing and writing follow a link that stays inside.",
    async run({ sandbox }) {
      await sandbox.writeFile("real/file", "x");
      await script(sandbox, "ln -s real/file to-file && ln -s real to-dir && mkdir sub && ln -s ../real sub/up");
      equal(await sandbox.readFile("to-file"), "x", "a link to a file");
      equal(await sandbox.readFile("to-dir/file"), "x", "behind a link to a directory");
      equal(await sandbox.listDirectory("sub/up"), ["file"], "a link that goes up and stays inside");
      await sandbox.writeFile("to-dir/new", "y");
      equal(await sandbox.readFile("real/new"), "y", "written behind a link");
    },
  },
  {
    id: "links.read-out",
    title: "reading through a link that leads outside",
    requirement: "Reading or listing through a link that leads outside, absolute or relative, is `path_confinement`.",
    async run(context) {
      const { sandbox } = context;
      const outside = await makeOutside(context);
      const text =
        'ln -s "$1/canary" file && ln -s "$1" dir && ln -s file chain && ln -s ../../../../../../../../etc/passwd up';
      await script(sandbox, text, outside.path);
      for (const path of ["file", "dir/canary", "chain", "up"]) {
        await refuses("path_confinement", `readFile of ${path}`, () => sandbox.readFile(path));
        await refuses("path_confinement", `readBytes of ${path}`, () => sandbox.readBytes(path));
      }
      await refuses("path_confinement", "listDirectory", () => sandbox.listDirectory("dir"));
      await refuses("path_confinement", "stat behind a link", () => sandbox.stat("dir/canary"));
      equal((await sandbox.stat("file"))?.type, "symlink", "stat of the link itself");
    },
  },
  {
    id: "links.write-out",
    title: "writing through a link that leads outside",
    requirement: "Writing, deleting or making directories through a link that leads outside changes nothing there.",
    async run(context) {
      const { sandbox } = context;
      const outside = await makeOutside(context);
      await script(
        sandbox,
        'ln -s "$1/canary" file && ln -s "$1" dir && ln -s ../../../../../../../../tmp up',
        outside.path,
      );
      await refuses("path_confinement", "writeFile to a link", () => sandbox.writeFile("file", "bad"));
      const below = outside.path.replace("/tmp", "up");
      for (const path of ["dir/new", "dir/deep/new", "dir/canary", `${below}/new`]) {
        await refuses("path_confinement", `writeFile ${path}`, () => sandbox.writeFile(path, "bad"));
        await refuses("path_confinement", `uploadFiles ${path}`, () => sandbox.uploadFiles([{ path, content: "bad" }]));
      }
      await refuses("path_confinement", "makeDirectory", () => sandbox.makeDirectory("dir/made"));
      await refuses("path_confinement", "deleteFile", () => sandbox.deleteFile("dir/canary"));
      await refuses("path_confinement", "setWorkdir", () => sandbox.setWorkdir("dir"));
      await outside.assertUntouched();
    },
  },
  {
    id: "links.dangling",
    title: "a dangling link",
    requirement: "A link to a missing place outside is `path_confinement`, and writing to it makes nothing there.",
    async run(context) {
      const { sandbox } = context;
      const outside = await makeOutside(context);
      await script(sandbox, 'ln -s "$1/made" out && ln -s missing in', outside.path);
      await refuses("path_confinement", "writeFile", () => sandbox.writeFile("out", "bad"));
      await refuses("path_confinement", "readFile", () => sandbox.readFile("out"));
      equal(await sandbox.readFile("in"), null, "a link to a missing file inside");
      await outside.assertUntouched();
    },
  },
  {
    id: "links.host",
    title: "a link to a host file",
    requirement: "No link leads to a file of the machine that runs the kit, for reading or writing.",
    async run({ sandbox, hostDirectory }) {
      const host = await hostDirectory();
      await writeFile(`${host}/victim`, "host content");
      await script(sandbox, 'ln -s "$1/victim" file && ln -s "$1" dir', host);
      for (const path of ["file", "dir/victim"]) {
        await refuses("path_confinement", `readFile ${path}`, () => sandbox.readFile(path));
        await refuses("path_confinement", `writeFile ${path}`, () => sandbox.writeFile(path, "bad"));
      }
      await refuses("path_confinement", "writeFile dir/new", () => sandbox.writeFile("dir/new", "bad"));
      equal(await readFile(`${host}/victim`, "utf8"), "host content", "the file of the host");
      equal(await readdir(host), ["victim"], "the directory of the host");
    },
  },
  {
    id: "links.loop",
    title: "links in a loop",
    requirement: "Links that point at each other are an error, never a hang.",
    async run({ sandbox }) {
      await script(sandbox, "ln -s b a && ln -s a b && ln -s self self");
      for (const path of ["a", "self", "a/file"]) {
        await refuses(["invalid_path", "path_confinement", "not_found"], `readFile ${path}`, () =>
          sandbox.readFile(path),
        );
      }
    },
  },
  {
    id: "links.race-file",
    title: "a file that becomes a link",
    requirement: "While a command swaps a file and a link that leads outside, no call reads or writes outside.",
    async run(context) {
      const { sandbox } = context;
      const outside = await makeOutside(context);
      const swapper = finishes(sandbox, { argv: scriptArgv(SWAP_FILE, outside.path) });
      const seen = new Set<string | null>();
      try {
        for (let i = 0; await goesOn(sandbox, i); i++) {
          seen.add(await sandbox.readFile("x").catch(codeOf));
          if (i % 4 === 0) seen.add(await sandbox.writeFile("x", "good").then(() => "good", codeOf));
        }
      } finally {
        await sandbox.writeFile("stop", "");
        await swapper.catch(() => undefined);
      }
      check((await rounds(sandbox)) >= 10, "the swapping never got going, so nothing was shown");
      check(!seen.has(outside.secret), "the content of the file outside was read");
      const strange = [...seen].filter((answer) => !["good", "path_confinement", null].includes(answer));
      equal(strange, [], "answers other than the content and path_confinement");
      await outside.assertUntouched();
    },
  },
  {
    id: "links.race-directory",
    title: "a directory that becomes a link",
    requirement:
      "While a command swaps a directory and a link that leads outside, no call reads, writes or deletes outside.",
    async run(context) {
      const { sandbox } = context;
      const outside = await makeOutside(context);
      const swapper = finishes(sandbox, { argv: scriptArgv(SWAP_DIRECTORY, outside.path) });
      const seen = new Set<string | null>();
      try {
        for (let i = 0; await goesOn(sandbox, i); i++) {
          seen.add(await sandbox.readFile("d/canary").catch(codeOf));
          if (i % 4 === 0) await sandbox.exec({ argv: ["true"], cwd: "d" }).catch(codeOf);
          if (i % 4 === 1) await sandbox.writeFile("d/new", "bad").catch(codeOf);
          if (i % 4 === 2) await sandbox.deleteFile("d/canary").catch(codeOf);
        }
      } finally {
        await sandbox.writeFile("stop", "");
        await swapper.catch(() => undefined);
      }
      check((await rounds(sandbox)) >= 10, "the swapping never got going, so nothing was shown");
      check(!seen.has(outside.secret), "the content of the file outside was read");
      await outside.assertUntouched();
    },
  },
  {
    id: "links.hard",
    title: "a hard link",
    requirement: "Writing to a file with a second hard link does not change the other one: files are replaced.",
    async run({ sandbox }) {
      await sandbox.writeFile("one", "first");
      await script(sandbox, "ln one two");
      await sandbox.writeFile("one", "second");
      equalBytes(await sandbox.readBytes("two"), utf8("first"), "the second name");
      equal(await sandbox.readFile("one"), "second", "the first name");
    },
  },
];

/** Whether to try once more. After enough tries it only waits for more swaps, so it pauses between them. */
async function goesOn(sandbox: Sandbox, tries: number): Promise<boolean> {
  if (tries < MIN_TRIES) return true;
  if (tries >= MAX_TRIES || (await rounds(sandbox)) >= MIN_ROUNDS) return false;
  await pause(5);
  return true;
}

async function rounds(sandbox: Sandbox): Promise<number> {
  return (await sandbox.stat("rounds"))?.size ?? 0;
}

function codeOf(error: unknown): string {
  return (error as { code?: string }).code ?? String(error);
}
