import type { Capabilities } from "../../../contracts/types.js";
import { check, equal, includes, refuses } from "../assert.js";
import { script } from "../script.js";
import type { ConformanceCase } from "../types.js";

/** No backend works there by itself. */
const PLACE = "/workspace/app";

const canPlace = ({ workDir }: Capabilities): string | undefined =>
  workDir === true ? undefined : "capabilities.workDir is not true";

export const workDirCases: readonly ConformanceCase[] = [
  {
    id: "workdir.place",
    title: "a chosen work directory",
    requirement: "`workDir` is where commands start and files are, or is refused with `unsupported`.",
    needs: canPlace,
    options: { workDir: PLACE },
    async refused({ open }) {
      const error = await refuses("unsupported", "open with workDir", () => open({ workDir: PLACE }));
      includes(error.message, PLACE, "the message names the value");
    },
    async run({ sandbox }) {
      equal(sandbox.workDir, PLACE, "workDir");
      equal(await script(sandbox, "pwd -P; echo inside > made"), `${PLACE}\n`, "pwd");
      equal(await sandbox.readFile(`${PLACE}/made`), "inside\n", "an absolute path");
      equal(await sandbox.listDirectory(), ["made"], "names");
      await sandbox.writeFile("dir/file", "x");
      equal(await script(sandbox, `cat ${PLACE}/dir/file`), "x", "what a command sees");
      await refuses("path_confinement", "a path above it", () => sandbox.readFile("/workspace/other"));
    },
  },
  {
    id: "workdir.kept",
    title: "the place of a kept sandbox",
    requirement: "A kept sandbox has the same work directory when it is reopened, and no other can be asked for.",
    needs: canPlace,
    async run({ open, defer, harness }) {
      const first = await open({ workDir: PLACE, keep: true });
      const { id } = first;
      defer(async () => {
        await first.teardown();
        if (harness.remove) return harness.remove(id);
        return (await harness.open({ id, keep: false })).teardown();
      });
      await first.writeFile("file", "kept");
      await first.teardown();
      await refuses("invalid_argument", "another place", () => open({ id, workDir: "/workspace/other" }));
      const second = await open({ id });
      equal(second.workDir, PLACE, "workDir");
      equal(await script(second, `pwd -P; cat ${PLACE}/file`), `${PLACE}\nkept`, "what a command sees");
    },
  },
  {
    id: "workdir.fork",
    title: "the place of a fork",
    requirement: "A fork has its files at the same path inside as its origin, so that absolute paths still lead there.",
    needs: (capabilities) => (capabilities.fork === "none" ? "capabilities.fork is none" : canPlace(capabilities)),
    async run({ sandbox, defer }) {
      const { workDir, hostDir } = sandbox;
      await script(
        sandbox,
        'echo "#!/bin/sh" > tool && echo "cat $PWD/word" >> tool && chmod +x tool && echo one > word',
      );
      const fork = await sandbox.fork();
      defer(() => fork.teardown());
      equal(fork.workDir, workDir, "workDir");
      check(hostDir === undefined || fork.hostDir !== hostDir, "both have the same directory on the host");
      await fork.writeFile("word", "two\n");
      equal(await script(fork, `pwd -P; ${workDir}/tool`), `${workDir}\ntwo\n`, "in the fork");
      equal(await script(sandbox, `${workDir}/tool`), "one\n", "in the origin");
    },
  },
  {
    id: "workdir.snapshot",
    title: "the place of a snapshot",
    requirement: "A sandbox that starts with a snapshot has its files where they were, unless the call says otherwise.",
    needs: (capabilities) =>
      capabilities.snapshot === "none" ? "capabilities.snapshot is none" : canPlace(capabilities),
    options: { workDir: PLACE },
    async run({ sandbox, open }) {
      await script(sandbox, 'echo saved > word && ln -s "$PWD/word" link');
      const options: object = { snapshot: await sandbox.snapshot(), image: undefined };
      const other = await open(options);
      equal(other.workDir, PLACE, "workDir");
      equal(await script(other, "pwd -P; cat link"), `${PLACE}\nsaved\n`, "what a command sees");
    },
  },
  {
    id: "workdir.invalid",
    title: "a place that can't be one",
    requirement:
      "A `workDir` that is relative, the root, a system folder, a home or `/tmp` itself is `invalid_argument`.",
    async run({ open }) {
      const bad = ["app", "", "/", "//", "/etc", "/usr/local/app", "/proc/1", "/var", "/tmp", "/root", "/home/me"];
      for (const workDir of [...bad, "/a/../b", "/a\0b", "/glovebox", "/run/app/"]) {
        const error = await refuses("invalid_argument", `workDir ${JSON.stringify(workDir)}`, () => open({ workDir }));
        includes(error.message, "workDir", "the message names the option");
      }
    },
  },
];
