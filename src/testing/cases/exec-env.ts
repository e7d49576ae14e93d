import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { check, equal, includes, refuses } from "../assert.js";
import { script, scriptArgv } from "../script.js";
import type { ConformanceCase } from "../types.js";

export const execEnvCases: readonly ConformanceCase[] = [
  {
    id: "exec.env.values",
    title: "values arrive unchanged",
    requirement: "A value in the environment is exact: quotes, line breaks, dollars, Unicode, empty, 100,000 bytes.",
    async run({ sandbox }) {
      const values = [
        "plain",
        "$HOME `id` $(id)",
        "two\nlines\n",
        "'\"\\",
        "€ 日本",
        "",
        " spaces ",
        "a=b=c",
        "x".repeat(100_000),
      ];
      for (const value of values) {
        const result = await sandbox.exec({ argv: scriptArgv('printf %s "$KIT_VALUE"'), env: { KIT_VALUE: value } });
        equal(result.stdout, value, `value of ${value.length} characters`);
      }
    },
  },
  {
    id: "exec.env.merge",
    title: "the sandbox's environment and the command's",
    requirement:
      "A command gets the sandbox's environment with its own on top, and leaves nothing behind for the next.",
    options: { env: { KIT_A: "sandbox a", KIT_B: "sandbox b" } },
    async run({ sandbox }) {
      const print = scriptArgv('printf "%s|" "$KIT_A" "$KIT_B" "$KIT_C"');
      equal((await sandbox.exec({ argv: print })).stdout, "sandbox a|sandbox b||", "the sandbox's environment");
      const result = await sandbox.exec({ argv: print, env: { KIT_A: "own a", KIT_C: "own c" } });
      equal(result.stdout, "own a|sandbox b|own c|", "with the command's on top");
      equal((await sandbox.exec({ argv: print })).stdout, "sandbox a|sandbox b||", "the next command's");
    },
  },
  {
    id: "exec.env.invalid-keys",
    title: "invalid names",
    requirement: "A name that does not match [A-Za-z_][A-Za-z0-9_]* is `invalid_argument`, and nothing is started.",
    async run({ sandbox }) {
      for (const key of ["1A", "A-B", "A=B", "", "A B", "Ä", "A\n", "A\0", "$(x)"]) {
        const call = () => sandbox.exec({ argv: scriptArgv(": > started"), env: { [key]: "v" } });
        const error = await refuses("invalid_argument", `the name ${JSON.stringify(key)}`, call);
        includes(error.message, "Invalid env key", "message");
        includes(error.message, "must match [A-Za-z_][A-Za-z0-9_]*", "message");
      }
      equal(await sandbox.stat("started"), null, "what the command would have made");
    },
  },
  {
    id: "exec.env.invalid-values",
    title: "invalid values",
    requirement: "A NUL byte in a value, or a value that is not a string, is `invalid_argument`.",
    async run({ sandbox }) {
      for (const value of ["a\0b", 1, null, {}]) {
        const call = () => sandbox.exec({ argv: ["true"], env: { KIT: value as string } });
        await refuses("invalid_argument", `the value ${JSON.stringify(value)}`, call);
      }
      equal((await sandbox.exec({ argv: ["true"], env: { KIT: "fine" } })).exitCode, 0, "exit code with a good one");
    },
  },
  {
    id: "exec.env.invalid-at-open",
    title: "invalid names at opening",
    requirement: "An invalid name in the environment of the sandbox is refused before anything is created.",
    async run({ open }) {
      await refuses("invalid_argument", 'open with env { "A-B": … }', () => open({ env: { "A-B": "v" } }));
    },
  },
  {
    id: "exec.env.host-absent",
    title: "no variables of the host",
    requirement: "No variable of the process that opens the sandbox reaches a command.",
    exclusive: true,
    async run({ open, defer }) {
      const secret = randomUUID();
      const names = ["GLOVEBOX_KIT_TOKEN", "GITHUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK"];
      for (const name of names) {
        const old = process.env[name];
        process.env[name] = secret;
        defer(async () => {
          if (old === undefined) delete process.env[name];
          else process.env[name] = old;
        });
      }
      const sandbox = await open();
      const seen = await script(sandbox, "env");
      check(!seen.includes(secret), `a command sees a host variable:\n${seen.replaceAll(secret, "<secret>")}`);
      includes(seen, "PATH=", "the environment of a command");
    },
  },
  {
    id: "exec.env.host-processes",
    title: "no variables of host processes",
    requirement: "No /proc/*/environ in the sandbox shows the environment of a process outside.",
    needs: ({ isolation }) => (isolation === "none" ? "capabilities.isolation is none" : undefined),
    async run({ sandbox, defer }) {
      const secret = randomUUID();
      const outside = spawn(process.execPath, ["-e", "setTimeout(() => {}, 120000)"], {
        env: { KIT_SECRET: secret },
        stdio: "ignore",
      });
      await once(outside, "spawn");
      defer(async () => outside.kill("SIGKILL"));
      const text = 'cat /proc/[0-9]*/environ 2>/dev/null | tr "\\0" "\\n"; env';
      const result = await sandbox.exec({ argv: scriptArgv(text), env: { KIT_OWN: "own" } });
      includes(result.stdout, "KIT_OWN=own", "the environments that are seen");
      check(!result.stdout.includes(secret), "the environment of a process outside is seen");
    },
  },
  {
    id: "exec.env.usable",
    title: "a usable environment",
    requirement: "PATH finds the usual programs, and HOME is a writable directory.",
    async run({ sandbox }) {
      const text = 'command -v ls >/dev/null && cd "$HOME" && : > .kit && rm .kit && printf "%s" "$PATH"';
      check((await script(sandbox, text)).includes("/"), "PATH names no directory");
    },
  },
];
