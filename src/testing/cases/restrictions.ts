import { chmod, readFile, writeFile } from "node:fs/promises";
import { check, equal, includes, refuses } from "../assert.js";
import { script, scriptArgv } from "../script.js";
import type { ConformanceCase } from "../types.js";

export const restrictionCases: readonly ConformanceCase[] = [
  {
    id: "allow.exact",
    title: "only allowed programs",
    requirement: "With `allow` only programs with exactly these names start; any other is `command_not_allowed`.",
    options: { allow: ["echo", "cat"] },
    async run({ sandbox }) {
      equal((await sandbox.exec({ argv: ["echo", "sh", "-c"] })).stdout, "sh -c\n", "an allowed program");
      await sandbox.writeFile("echo", "#!/bin/sh\n: > canary\n", { mode: 0o755 });
      for (const name of ["ls", "sh", "/bin/echo", "./echo", "echo ", "Echo", "echo\n", "ech", "echoo", "cat/../ls"]) {
        const error = await refuses("command_not_allowed", `exec ${name}`, () => sandbox.exec({ argv: [name] }));
        includes(error.message, name.trim(), "the message names the program");
      }
      equal(await sandbox.stat("canary"), null, "what a program of that name would have made");
    },
  },
  {
    id: "allow.everywhere",
    title: "allowed programs in every call",
    requirement: "`allow` applies to `spawn` and to the shell of `shell` too.",
    options: { allow: ["echo"] },
    async run({ sandbox }) {
      await refuses("command_not_allowed", "spawn ls", () => sandbox.spawn({ argv: ["ls"] }));
      await refuses("command_not_allowed", "shell", () => sandbox.shell("echo x"));
      await refuses("command_not_allowed", "shell with a path", () => sandbox.shell("x", { shellPath: "/bin/sh" }));
      const child = await sandbox.spawn({ argv: ["echo", "x"] });
      equal((await child.wait()).exitCode, 0, "an allowed program");
    },
  },
  {
    id: "allow.nothing",
    title: "no allowed programs",
    requirement: "An empty `allow` allows nothing.",
    async run({ open }) {
      const sandbox = await open({ allow: [] });
      await refuses("command_not_allowed", "exec echo", () => sandbox.exec({ argv: ["echo", "x"] }));
      await sandbox.writeFile("file", "x");
      equal(await sandbox.readFile("file"), "x", "files are not programs");
    },
  },
  {
    id: "user.switch",
    title: "another user",
    requirement: "A command runs as the requested user, or is refused with `unsupported`.",
    needs: ({ user }) => (user ? undefined : "capabilities.user is false"),
    async refused({ sandbox }) {
      await refuses("unsupported", "exec with a user", () => sandbox.exec({ argv: ["true"], user: "nobody" }));
      await refuses("unsupported", "spawn with a user", () => sandbox.spawn({ argv: ["true"], user: "root" }));
    },
    async run({ sandbox }) {
      equal((await sandbox.exec({ argv: ["id", "-un"], user: "nobody" })).stdout, "nobody\n", "id");
      await refuses(["not_found", "invalid_argument"], "an unknown user", () =>
        sandbox.exec({ argv: ["true"], user: "no-such-user-here" }),
      );
    },
  },
  {
    id: "mounts.kept-or-refused",
    title: "a mount",
    requirement: "A mount appears in the sandbox, read-only by default, or is refused with `unsupported`.",
    async run({ open, hostDirectory }) {
      const source = await hostDirectory();
      await writeFile(`${source}/file`, "from the host");
      await chmod(source, 0o755);
      const opened = open({ mounts: [{ source, target: "/mnt/kit" }] });
      const sandbox = await opened.catch(() => undefined);
      if (!sandbox) {
        await refuses("unsupported", "open with mounts", () => opened);
        return;
      }
      equal(await script(sandbox, "cat /mnt/kit/file"), "from the host", "the file inside");
      const write = await sandbox.exec({
        argv: scriptArgv("echo bad > /mnt/kit/file; rm -f /mnt/kit/file; : > /mnt/kit/new"),
      });
      check(write.exitCode !== 0, "a command wrote to a read-only mount");
      equal(await readFile(`${source}/file`, "utf8"), "from the host", "the file outside");
    },
  },
  {
    id: "isolation.required",
    title: "required isolation",
    requirement: 'With `isolation: "required"` the sandbox is isolated, or it is refused with `no_isolation`.',
    async run({ open }) {
      const opened = open({ isolation: "required" });
      const sandbox = await opened.catch(() => undefined);
      if (sandbox) check(sandbox.capabilities.isolation !== "none", "it was opened without isolation");
      else await refuses(["no_isolation", "unsupported"], "open", () => opened);
    },
  },
];
