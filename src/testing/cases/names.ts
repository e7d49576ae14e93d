import { randomUUID } from "node:crypto";
import { equal, refuses } from "../assert.js";
import { answers } from "../context.js";
import { scriptArgv } from "../script.js";
import type { ConformanceCase } from "../types.js";

export const nameCases: readonly ConformanceCase[] = [
  {
    id: "names.find",
    title: "names and labels",
    requirement:
      "A sandbox has the `name` and the `labels` that it was opened with, a kept one is reopened by its name, and no second one gets the name while there is one.",
    async run({ open, defer, harness }) {
      const name = `kit-${randomUUID()}`;
      const labels = { kit: "names", "kit/value": "ü 1" };
      const before = Date.now();
      const first = await open({ name, labels, keep: true });
      defer(async () => {
        await first.teardown();
        if (harness.remove) return harness.remove(first.id);
        return (await harness.open({ id: first.id, keep: false })).teardown();
      });
      equal([first.name, { ...first.labels }], [name, labels], "its name and labels");
      const made = Date.parse(first.createdAt);
      equal(made >= before - 60_000 && made <= Date.now() + 60_000, true, `createdAt, which is ${first.createdAt}`);
      await refuses("conflict", "a second one with the name", () => open({ name }));
      await first.writeFile("file", "named");
      await first.teardown();
      await refuses("conflict", "one with the name of a kept one", () => open({ name }));
      const second = await open({ id: name });
      equal([second.id, second.name, { ...second.labels }], [first.id, name, labels], "who it is when it is reopened");
      equal(second.createdAt, first.createdAt, "createdAt when it is reopened");
      equal(await second.readFile("file"), "named", "its file");
    },
  },
  {
    id: "names.invalid",
    title: "bad names and labels",
    requirement: "A name or a label that breaks the rules is `invalid_argument`, and nothing is made.",
    async run({ open }) {
      for (const name of ["", "../x", "a/b", "Upper", "a\nb", "x".repeat(64), "0123456789abcdef"]) {
        await refuses("invalid_argument", `the name ${JSON.stringify(name)}`, () => open({ name }));
      }
      const many = Object.fromEntries(Array.from({ length: 17 }, (_, at) => [`key${at}`, "x"]));
      for (const labels of [{ "a b": "x" }, { a: "x".repeat(256) }, { a: "\u001b[31m" }, many]) {
        await refuses("invalid_argument", `the labels ${JSON.stringify(labels).slice(0, 80)}`, () => open({ labels }));
      }
      await refuses("not_found", "a name that nobody has", () => open({ id: `kit-${randomUUID()}` }));
    },
  },
  {
    id: "names.second-handle",
    title: "a second handle",
    requirement:
      "`openSandbox({ id })` in the process that has the sandbox open gives a second handle to it. It owns nothing: tearing it down ends only the handle, and options that differ are `conflict`.",
    async run({ sandbox, open }) {
      const handle = await open({ id: sandbox.id });
      equal(
        [handle.id, handle.workDir, handle.createdAt],
        [sandbox.id, sandbox.workDir, sandbox.createdAt],
        "who it is",
      );
      await sandbox.writeFile("file", "shared");
      equal(
        (await handle.exec({ argv: scriptArgv("cat file") })).stdout,
        "shared",
        "a file of the first in the second",
      );
      await refuses("conflict", "another maxOutput", () => open({ id: sandbox.id, maxOutput: 17 }));
      await handle.teardown();
      await refuses("closed", "the handle after its teardown", () => handle.readFile("file"));
      await answers(sandbox);
    },
  },
  {
    id: "names.handle-ends",
    title: "a second handle ends with the sandbox",
    requirement: "When the owner tears a sandbox down, calls through other handles are `closed`.",
    closes: true,
    async run({ sandbox, open }) {
      const handle = await open({ id: sandbox.id });
      await answers(handle);
      await sandbox.teardown();
      await refuses("closed", "the handle after the owner's teardown", () => handle.exec({ argv: ["true"] }));
      await refuses("not_found", "a sandbox that is gone", () => open({ id: sandbox.id }));
    },
  },
];
