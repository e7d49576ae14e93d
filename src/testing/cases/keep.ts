import type { SandboxEvent } from "../../../contracts/types.js";
import type { Sandbox, SandboxOptions } from "../../sandbox/types.js";
import { check, equal, equalBytes, refuses, within } from "../assert.js";
import { noise } from "../bytes.js";
import { assertBeating, assertStill, HEARTBEAT } from "../heartbeat.js";
import { script, scriptArgv } from "../script.js";
import type { ConformanceCase, ConformanceContext } from "../types.js";

/** Opens a kept sandbox; it is removed for good at the end of the case. */
async function openKept({ open, defer, harness }: ConformanceContext, more: SandboxOptions = {}): Promise<Sandbox> {
  const sandbox = await open({ keep: true, ...more });
  const { id } = sandbox;
  defer(async () => {
    await sandbox.teardown();
    if (harness.remove) return harness.remove(id);
    const again = await harness.open({ id, keep: false });
    return again.teardown();
  });
  return sandbox;
}

export const keepCases: readonly ConformanceCase[] = [
  {
    id: "keep.reopen",
    title: "reopening a kept sandbox",
    requirement: "A sandbox opened with `keep` is reopened by its id after teardown, with its files as they were.",
    async run(context) {
      const { open } = context;
      const first = await openKept(context);
      const bytes = noise(100_000, 61);
      await first.writeFile("dir/bytes", bytes);
      await first.writeFile("tool", "#!/bin/sh\necho kept\n", { mode: 0o755 });
      await script(first, "ln -s tool link && echo inside > made");
      await first.teardown();
      await refuses("closed", "the first one after teardown", () => first.readFile("made"));

      const second = await open({ id: first.id });
      equal([second.id, second.backend, second.workDir], [first.id, first.backend, first.workDir], "who it is");
      equal(await second.listDirectory(), ["dir", "link", "made", "tool"], "names");
      equalBytes(await second.readBytes("dir/bytes"), bytes, "bytes");
      equal((await second.exec({ argv: ["./link"] })).stdout, "kept\n", "the program");
      await script(second, "echo more >> made");
      equal(await second.readFile("made"), "inside\nmore\n", "a file written by the first one, changed in the second");
    },
  },
  {
    id: "keep.processes-gone",
    title: "files stay, processes do not",
    requirement: "Teardown ends the processes of a kept sandbox too; a reopened one has none.",
    async run(context) {
      const first = await openKept(context);
      await first.spawn({ argv: scriptArgv(HEARTBEAT, "beat") });
      await assertBeating(first, "beat", "before teardown");
      await within(60_000, "teardown", first.teardown());
      const second = await context.open({ id: first.id });
      equal(await second.processes(), [], "processes");
      await assertStill(second, ["beat"], "after teardown");
    },
  },
  {
    id: "keep.all",
    title: "keeping $HOME and /tmp",
    requirement:
      'With `keep: "all"` a reopened sandbox has `$HOME` and `/tmp` as they were, too; `unsupported` where `capabilities.keep` is not `all`.',
    needs: ({ keep }) => (keep === "all" ? undefined : "capabilities.keep is not all"),
    async refused({ open }) {
      await refuses("unsupported", 'keep: "all"', () => open({ keep: "all" }));
    },
    async run(context) {
      const first = await openKept(context, { keep: "all" });
      const place = `/tmp/${first.id}`;
      const write =
        'mkdir -p "$HOME/.cache" "$1" && echo home > "$HOME/.cache/f" && echo tmp > "$1/f" && chmod 600 "$1/f"';
      await script(first, write, place);
      context.defer(async () => (await context.harness.open({ id: first.id }).catch(() => first)).teardown());
      await first.teardown();
      const second = await context.open({ id: first.id });
      const read = 'cat "$HOME/.cache/f" "$1/f" && ls -l "$1/f" | cut -c1-10 && echo more >> "$1/f" && echo done';
      equal(await script(second, read, place), "home\ntmp\n-rw-------\ndone\n", "what it was made with");
      // Not asked for again, and still kept.
      await second.teardown();
      const third = await context.open({ id: first.id });
      const end = 'cat "$1/f" "$HOME/.cache/f" && rm -rf "$1" "$HOME/.cache"';
      equal(await script(third, end, place), "tmp\nmore\nhome\n", "after the second reopening");
    },
  },
  {
    id: "keep.env-names",
    title: "variables that are missing when a sandbox is reopened",
    requirement:
      "A kept sandbox remembers the names of its `env`, never the values: reopening it without one of them is a `warning` that names it.",
    async run(context) {
      const env = { KIT_KEPT: "kit-value-1", KIT_OTHER: "kit-value-2" };
      const first = await openKept(context, { env });
      await first.teardown();
      const heard: string[] = [];
      const onEvent = ({ type, message }: SandboxEvent): void => {
        if (type === "warning") heard.push(message);
      };
      const second = await context.open({ id: first.id, env: { KIT_OTHER: "x" }, onEvent });
      check(heard.filter((text) => text.includes("KIT_KEPT")).length === 1, `heard ${JSON.stringify(heard)}`);
      check(!heard.some((text) => text.includes("KIT_OTHER") || text.includes("kit-value")), "it says too much");
      equal(await script(second, 'printf "%s" "$KIT_KEPT$KIT_OTHER"'), "x", "the values of this call only");
    },
  },
  {
    id: "keep.unknown-id",
    title: "an unknown id",
    requirement: "Reopening an unknown id, or that of a sandbox that was not kept, is `not_found`.",
    async run({ open }) {
      await refuses("not_found", "an unknown id", () => open({ id: "glovebox-no-such-sandbox" }));
      const gone = await open();
      await gone.teardown();
      await refuses("not_found", "an id that was not kept", () => open({ id: gone.id }));
    },
  },
  {
    id: "keep.invalid-id",
    title: "an invalid id",
    requirement: "An id that is a path or empty is an error and reads nothing.",
    async run({ open }) {
      for (const id of ["", "../x", "/etc", "a/b", "a\0b"]) {
        await refuses(["invalid_argument", "not_found"], `the id ${JSON.stringify(id)}`, () => open({ id }));
      }
    },
  },
  {
    id: "keep.exclusive",
    title: "reopening creates nothing",
    requirement: "`id` together with an option that creates a sandbox is `invalid_argument`.",
    async run(context) {
      const first = await openKept(context);
      await first.teardown();
      const baseDir = await context.hostDirectory();
      await refuses("invalid_argument", "id with baseDir", () => context.open({ id: first.id, baseDir }));
      await refuses("invalid_argument", "id with repo", () => context.open({ id: first.id, repo: baseDir }));
    },
  },
];
