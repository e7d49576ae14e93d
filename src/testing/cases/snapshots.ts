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
