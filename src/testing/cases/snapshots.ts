import { randomUUID } from "node:crypto";
import type { SandboxError } from "../../../contracts/errors.js";
import type { SandboxOptions } from "../../sandbox/types.js";
import { check, equal, equalBytes, includes, refuses } from "../assert.js";
import { noise } from "../bytes.js";
import { script } from "../script.js";
import type { ConformanceCase } from "../types.js";

const hasSnapshot: NonNullable<ConformanceCase["needs"]> = ({ snapshot }) =>
  snapshot === "none" ? "capabilities.snapshot is none" : undefined;
const hasFork: NonNullable<ConformanceCase["needs"]> = ({ fork }) =>
  fork === "none" ? "capabilities.fork is none" : undefined;
const hasGit: NonNullable<ConformanceCase["needs"]> = ({ git }) => (git ? undefined : "capabilities.git is false");

const refusesSnapshot: NonNullable<ConformanceCase["refused"]> = async ({ sandbox }) => {
  await refuses("unsupported", "snapshot", () => sandbox.snapshot());
};
const refusesRestore: NonNullable<ConformanceCase["refused"]> = async ({ sandbox }) => {
  await refuses("unsupported", "restore", () => sandbox.restore("no-such-snapshot"));
};
const refusesFork: NonNullable<ConformanceCase["refused"]> = async ({ sandbox }) => {
  await refuses("unsupported", "fork", () => sandbox.fork());
  await refuses("unsupported", "fork of two", () => sandbox.fork({ count: 2 }));
};
const refusesChanges: NonNullable<ConformanceCase["refused"]> = async ({ sandbox }) => {
  await refuses("unsupported", "changes", () => sandbox.changes());
};

/** A harness adds the image that its backend needs; a snapshot has its own. */
function startFrom(snapshot: string): SandboxOptions {
  const options: object = { snapshot, image: undefined };
  return options;
}

export const snapshotCases: readonly ConformanceCase[] = [
  {
    id: "snapshot.id",
    title: "the id of a snapshot",
    requirement: "`snapshot` returns a non-empty string, a new one each time something changed. [S1-AC-8]",
    needs: hasSnapshot,
    refused: refusesSnapshot,
    async run({ sandbox }) {
      await sandbox.writeFile("file", "one");
      const first = await sandbox.snapshot();
      await sandbox.writeFile("file", "two");
      const second = await sandbox.snapshot();
      check(typeof first === "string" && first.length > 0, `the id is ${JSON.stringify(first)}`);
      check(first !== second, "two snapshots have one id");
      equal(await sandbox.readFile("file"), "two", "the sandbox is unchanged");
    },
  },
  {
    id: "restore.files",
    title: "restoring files",
    requirement: "`restore` brings back content, bits and links, and removes what came later.",
    needs: hasSnapshot,
    refused: refusesRestore,
    async run({ sandbox }) {
      const bytes = noise(50_000, 71);
      const start = await sandbox.listDirectory();
      await sandbox.writeFile("a/bytes", bytes);
      await sandbox.writeFile("tool", "#!/bin/sh\necho ran\n", { mode: 0o755 });
      await script(sandbox, "ln -s tool link");
      const id = await sandbox.snapshot();
      await script(sandbox, "rm -r a link && chmod 644 tool && echo later > new");
      await sandbox.restore(id);
      equal(await sandbox.listDirectory(), [...start, "a", "link", "tool"].sort(), "names");
      equalBytes(await sandbox.readBytes("a/bytes"), bytes, "bytes");
      equal((await sandbox.exec({ argv: ["./link"] })).stdout, "ran\n", "the program");
    },
  },
  {
    id: "restore.twice",
    title: "restoring several snapshots",
    requirement: "Any snapshot can be restored, in any order, any number of times.",
    needs: hasSnapshot,
    refused: refusesRestore,
    async run({ sandbox }) {
      await sandbox.writeFile("file", "one");
      const one = await sandbox.snapshot();
      await sandbox.writeFile("file", "two");
      const two = await sandbox.snapshot();
      for (const [id, text] of [
        [one, "one"],
        [two, "two"],
        [one, "one"],
      ] as const) {
        await sandbox.restore(id);
        equal(await sandbox.readFile("file"), text, "after restore");
      }
    },
  },
  {
    id: "restore.unknown",
    title: "an unknown snapshot",
    requirement: "Restoring an unknown id is `not_found`, an invalid one an error, and nothing changes.",
    needs: hasSnapshot,
    refused: refusesRestore,
    async run({ sandbox }) {
      await sandbox.writeFile("file", "x");
      await sandbox.snapshot();
      for (const id of ["0000000000000000000000000000000000000000", "--help", "../x", ""]) {
        await refuses(["not_found", "invalid_argument"], `restore ${id}`, () => sandbox.restore(id));
      }
      equal(await sandbox.readFile("file"), "x", "the file");
    },
  },
  {
    id: "snapshot.named",
    title: "a snapshot by name",
    requirement: "A named snapshot is restored by its name. A name in use is `conflict`, a bad one `invalid_argument`.",
    needs: hasSnapshot,
    refused: refusesSnapshot,
    async run({ sandbox }) {
      const name = `kit.${randomUUID().slice(0, 8)}_named`;
      await sandbox.writeFile("file", "one");
      const id = await sandbox.snapshot({ name });
      check(id !== name, "the id is the name");
      await sandbox.writeFile("file", "two");
      await refuses("conflict", "a name in use", () => sandbox.snapshot({ name }));
      for (const bad of ["", "Upper", "a b", "../x", ".dot", "x".repeat(64), "0123456789abcdef", id]) {
        await refuses("invalid_argument", `the name ${bad}`, () => sandbox.snapshot({ name: bad }));
      }
      await sandbox.restore(name);
      equal(await sandbox.readFile("file"), "one", "after restoring by name");
      await sandbox.writeFile("file", "two");
      await sandbox.restore(id);
      equal(await sandbox.readFile("file"), "one", "after restoring by id");
    },
  },
  {
    id: "snapshot.abort",
    title: "an aborted snapshot",
    requirement: "Aborting `snapshot` rejects it with `aborted`, and the sandbox goes on.",
    needs: hasSnapshot,
    refused: refusesSnapshot,
    async run({ sandbox }) {
      await sandbox.writeFile("still", "here");
      await refuses("aborted", "an aborted signal", () => sandbox.snapshot({ signal: AbortSignal.abort() }));
      equal(await sandbox.readFile("still"), "here", "the file after it");
    },
  },
  {
    id: "snapshot.open",
    title: "a sandbox that starts with a snapshot",
    requirement: "`open({ snapshot })`, by id or name, makes an independent sandbox with the files of the snapshot.",
    needs: hasSnapshot,
    refused: refusesSnapshot,
    async run({ sandbox, open }) {
      const name = `kit.${randomUUID().slice(0, 8)}_open`;
      await sandbox.writeFile("a/file", "saved");
      await sandbox.writeFile("tool", "#!/bin/sh\ncat a/file\n", { mode: 0o755 });
      const names = await sandbox.listDirectory();
      await sandbox.snapshot({ name });
      await sandbox.writeFile("a/file", "later");
      const other = await open(startFrom(name));
      check(other.id !== sandbox.id, "the new sandbox has the id of the other");
      equal(await other.listDirectory(), names, "names");
      equal((await other.exec({ argv: ["./tool"] })).stdout, "saved", "the program and its file");
      await other.writeFile("a/file", "other");
      equal(await sandbox.readFile("a/file"), "later", "the file of the first sandbox");
    },
  },
  {
    id: "snapshot.open-refused",
    title: "a snapshot that can't be opened",
    requirement: "An unknown snapshot is `not_found`. `snapshot` with `id` or `baseDir` is `invalid_argument`.",
    needs: hasSnapshot,
    refused: refusesSnapshot,
    async run({ open, hostDirectory }) {
      await refuses("not_found", "an unknown snapshot", () => open(startFrom("no.such-snapshot")));
      for (const snapshot of ["", "../x", "a b", "/etc"]) {
        await refuses(["invalid_argument", "not_found"], `the snapshot ${snapshot}`, () => open(startFrom(snapshot)));
      }
      await refuses("invalid_argument", "with id", () => open({ ...startFrom("some"), id: "some-sandbox" }));
      const baseDir = await hostDirectory();
      await refuses("invalid_argument", "with baseDir", () => open({ ...startFrom("some"), baseDir }));
    },
  },
  {
    id: "snapshot.open-changes",
    title: "the changes of a sandbox that starts with a snapshot",
    requirement: "Its `changes` are compared with what the sandbox of the snapshot started from.",
    needs: (capabilities, harness) => hasSnapshot(capabilities, harness) ?? hasGit(capabilities, harness),
    async run({ sandbox, open, skip }) {
      await sandbox.writeFile("added file", "saved\n");
      const { files } = await sandbox.changes();
      const other = await open(startFrom(await sandbox.snapshot())).catch((error: SandboxError) => {
        if (error.code === "unsupported") skip(`${error.message}: ${error.hint}`);
        throw error;
      });
      equal((await other.changes()).files, files, "files");
      await other.writeFile("later file", "later\n");
      equal((await other.changes()).files.length, files.length + 1, "files after one more");
    },
  },
  {
    id: "fork.independent",
    title: "an independent fork",
    requirement: "A fork has the same files and another id, and shares nothing afterwards.",
    needs: hasFork,
    refused: refusesFork,
    async run({ sandbox, defer }) {
      await sandbox.writeFile("file", "common");
      const fork = await sandbox.fork();
      defer(() => fork.teardown());
      check(fork.id !== sandbox.id, "the fork has the id of its origin");
      equal(await fork.readFile("file"), "common", "the file in the fork");
      await script(fork, "echo fork > file");
      await sandbox.writeFile("other", "origin");
      equal([await sandbox.readFile("file"), await fork.readFile("other")], ["common", null], "each on its own");
      await fork.teardown();
      equal(await sandbox.readFile("file"), "common", "the origin after the fork's end");
    },
  },
  {
    id: "fork.many",
    title: "several forks",
    requirement: "`fork({ count })` returns that many independent forks.",
    needs: hasFork,
    refused: refusesFork,
    async run({ sandbox, defer }) {
      await sandbox.writeFile("file", "common");
      const forks = await sandbox.fork({ count: 3 });
      for (const fork of forks) defer(() => fork.teardown());
      equal(new Set([sandbox.id, ...forks.map(({ id }) => id)]).size, 4, "different ids");
      await Promise.all(forks.map((fork, i) => fork.writeFile("file", `${i}`)));
      equal(await Promise.all(forks.map((fork) => script(fork, "cat file"))), ["0", "1", "2"], "their files");
      await refuses("invalid_argument", "a count of zero", () => sandbox.fork({ count: 0 }));
    },
  },
  {
    id: "changes.files",
    title: "changed files",
    requirement: "`changes` lists every file that differs from the start, and has a patch.",
    needs: hasGit,
    refused: refusesChanges,
    async run({ sandbox }) {
      equal((await sandbox.changes()).files, [], "at the start");
      await sandbox.writeFile("added file", "new content\n");
      const { files, patch } = await sandbox.changes();
      equal(files, [{ path: "added file", status: "added" }], "files");
      includes(patch, "+new content", "patch");
    },
  },
];
