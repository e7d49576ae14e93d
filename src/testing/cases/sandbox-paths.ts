import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Capabilities } from "../../../contracts/types.js";
import type { Sandbox } from "../../sandbox/types.js";
import { check, equal, includes, refuses } from "../assert.js";
import { script } from "../script.js";
import type { ConformanceCase, ConformanceContext } from "../types.js";

const canReach = ({ paths }: Capabilities): string | undefined =>
  paths?.includes("sandbox") === true ? undefined : "capabilities.paths has no sandbox";

const needed = { needs: canReach, options: { paths: "sandbox" } } as const;

/** A new folder outside the work directory. */
async function folder({ sandbox, defer }: Pick<ConformanceContext, "sandbox" | "defer">): Promise<string> {
  const made = (await script(sandbox, "mktemp -d /tmp/paths-XXXXXX")).trim();
  defer(() => script(sandbox, 'rm -rf "$1"', made));
  return made;
}

/** What a command gets of a file; undefined if it can't read it. */
async function readByCommand(sandbox: Sandbox, path: string): Promise<string | undefined> {
  const { exitCode, stdout } = await sandbox.exec({ argv: ["head", "-c", "4096", path] });
  return exitCode === 0 ? stdout : undefined;
}

/** What a file call gets of a file; undefined if it can't read it. */
async function readByCall(sandbox: Sandbox, path: string): Promise<string | undefined> {
  try {
    return (await sandbox.readFile(path)) ?? undefined;
  } catch {
    return undefined;
  }
}

export const sandboxPathCases: readonly ConformanceCase[] = [
  {
    id: "paths.sandbox.files",
    title: "file calls outside the work directory",
    requirement:
      'With `paths: "sandbox"` every file call reaches what a command reaches; where that can\'t be promised it is `unsupported`.',
    ...needed,
    async refused({ open }) {
      const error = await refuses("unsupported", 'open with paths: "sandbox"', () => open({ paths: "sandbox" }));
      includes(error.message, '"sandbox"', "the message names the value");
    },
    async run({ sandbox, defer }) {
      const at = await folder({ sandbox, defer });
      await sandbox.writeFile(`${at}/deep/er/file`, "one", { mode: 0o600 });
      await sandbox.appendFile(`${at}/deep/er/file`, " two");
      equal(await script(sandbox, `cat ${at}/deep/er/file`), "one two", "what a command sees");
      equal((await sandbox.stat(`${at}/deep/er/file`))?.size, 7, "stat");
      await sandbox.makeDirectory(`${at}/made/here`);
      await sandbox.rename(`${at}/deep/er/file`, `${at}/made/here/moved`);
      await sandbox.copy(`${at}/made`, "brought", { recursive: true });
      equal(await sandbox.readFile("brought/here/moved"), "one two", "copied into the work directory");
      await sandbox.uploadFiles([
        { path: `${at}/a`, content: "a" },
        { path: "b", content: "b" },
      ]);
      equal(await sandbox.listDirectory(at), ["a", "deep", "made"], "names");
      equal(await sandbox.deleteFile(`${at}/a`), true, "deleteFile");
      equal(await sandbox.remove(`${at}/made`, { recursive: true }), true, "remove");
      equal(await script(sandbox, `ls ${at}; cat b`), "deep\nb", "what is left");
      equal(await sandbox.readFile(`${at}/none`), null, "an absent file");
      await refuses("not_found", "a list of an absent directory", () => sandbox.listDirectory(`${at}/none`));
    },
  },
  {
    id: "paths.sandbox.trees",
    title: "streams and trees outside the work directory",
    requirement: 'With `paths: "sandbox"` streams and copies from and to the host reach any path of the sandbox, too.',
    ...needed,
    async run({ sandbox, defer, hostDirectory }) {
      const at = await folder({ sandbox, defer });
      const host = await hostDirectory();
      const content = Buffer.alloc(3 << 20, "0123456789abcdef");
      const pieces = (async function* () {
        yield content.subarray(0, 1 << 20);
        yield content.subarray(1 << 20);
      })();
      await sandbox.writeFile(`${at}/large`, pieces);
      equal(await script(sandbox, `wc -c < ${at}/large | tr -d ' '`), `${content.length}\n`, "size");
      const stream = await sandbox.readStream(`${at}/large`, { start: 1 << 20, end: (1 << 20) + 16 });
      check(stream !== null, "readStream found nothing");
      equal(await new Response(stream).text(), "0123456789abcdef", "a part of it");
      equal(Buffer.compare((await sandbox.readBytes(`${at}/large`)) ?? Buffer.alloc(0), content), 0, "all of it");
      await writeFile(join(host, "file"), "from the host");
      await sandbox.uploadDirectory(host, `${at}/tree`);
      equal(await script(sandbox, `cat ${at}/tree/file`), "from the host", "what a command sees");
      await script(sandbox, `echo back > ${at}/tree/file`);
      const out = await sandbox.downloadDirectory(`${at}/tree`, join(host, "out"));
      equal(await readFile(join(out, "file"), "utf8"), "back\n", "what the host gets");
    },
  },
  {
    id: "paths.sandbox.cwd",
    title: "work directories outside",
    requirement: 'With `paths: "sandbox"` `cwd` and `setWorkdir` take any directory that a command could enter.',
    ...needed,
    async run({ sandbox, defer }) {
      const at = await folder({ sandbox, defer });
      await sandbox.writeFile(`${at}/in/file`, "x");
      const pwd = (cwd: string): Promise<string> =>
        sandbox.exec({ argv: ["pwd", "-P"], cwd }).then(({ stdout }) => stdout.trim());
      equal(await pwd(at), at, "cwd");
      equal(await pwd("/"), "/", "the root");
      await script(sandbox, `ln -s ${at}/in enter`);
      equal(await pwd("enter"), `${at}/in`, "a link that leads outside");
      const spawned = await sandbox.spawn({ argv: ["cat"], cwd: at, stdin: "pipe" });
      const writer = spawned.stdin?.getWriter();
      await writer?.write(Buffer.from("typed"));
      await writer?.close();
      equal(await new Response(spawned.stdout).text(), "typed", "what it is given");
      equal((await spawned.wait()).exitCode, 0, "its end");
      await sandbox.setWorkdir(at);
      equal(await script(sandbox, "cat in/file"), "x", "a command starts there");
      equal(await sandbox.listDirectory("in"), ["file"], "and so do relative paths");
      await sandbox.setWorkdir(sandbox.workDir);
      await refuses("not_found", "an absent cwd", () => pwd(`${at}/none`));
      await refuses("invalid_path", "a file as cwd", () => pwd(`${at}/in/file`));
      await refuses("not_found", "setWorkdir to an absent path", () => sandbox.setWorkdir(`${at}/none`));
      await refuses("invalid_path", "setWorkdir to a file", () => sandbox.setWorkdir(`${at}/in/file`));
    },
  },
  {
    id: "paths.sandbox.links",
    title: "links outside the work directory",
    requirement: 'With `paths: "sandbox"` absolute and relative links resolve as they do for a command.',
    ...needed,
    async run({ sandbox, defer }) {
      const at = await folder({ sandbox, defer });
      await script(sandbox, `echo one > ${at}/file && mkdir ${at}/dir && ln -s ${at}/file out && ln -s ${at}/dir dir`);
      await script(sandbox, `ln -s ../file ${at}/dir/up && ln -s "$PWD/own" ${at}/back && echo own > own`);
      equal(await sandbox.readFile("out"), "one\n", "an absolute link");
      equal(await sandbox.readFile("dir/up"), "one\n", "a relative one behind it");
      equal(await sandbox.readFile(`${at}/back`), "own\n", "one into the work directory");
      equal((await sandbox.stat("out"))?.type, "symlink", "stat of the link");
      equal((await sandbox.stat("out", { follow: true }))?.type, "file", "stat of its target");
      await sandbox.writeFile("out", "two");
      await sandbox.writeFile("dir/new", "three");
      equal(await script(sandbox, `cat ${at}/file ${at}/dir/new; test -h out`), "twothree", "written through links");
      equal(await sandbox.remove("dir"), true, "remove");
      equal(await script(sandbox, `ls ${at}/dir`), "new\nup\n", "removing a link leaves its target");
      await script(sandbox, "ln -s loop loop");
      await refuses("invalid_path", "a loop", () => sandbox.readFile("loop"));
    },
  },
  {
    id: "paths.sandbox.processes",
    title: "links of /proc",
    requirement:
      'With `paths: "sandbox"` no call follows a link of `/proc` to what a process has open, however it gets there.',
    ...needed,
    async run({ sandbox }) {
      const found = (await script(sandbox, "if [ -e /proc/self ]; then echo yes; else echo no; fi")).trim();
      equal(
        (await sandbox.stat("/proc/self")) === null ? "no" : "yes",
        found,
        "whether there is a /proc, by a call and by a command",
      );
      if (found === "no") return;
      await script(sandbox, "ln -s /proc/self/root root && ln -s /proc/self/cwd cwd && echo x > file");
      for (const link of ["/proc/self/root", "/proc/self/cwd", "/proc/thread-self/root", "root", "cwd"]) {
        const calls = {
          readFile: () => sandbox.readFile(`${link}/etc/passwd`),
          listDirectory: () => sandbox.listDirectory(link),
          stat: () => sandbox.stat(`${link}/etc`),
          writeFile: () => sandbox.writeFile(`${link}/tmp/written`, "x"),
          setWorkdir: () => sandbox.setWorkdir(link),
          exec: () => sandbox.exec({ argv: ["true"], cwd: link }),
        };
        for (const [name, call] of Object.entries(calls)) {
          await refuses(["invalid_path", "permission_denied", "not_found"], `${name} of ${link}`, call);
        }
      }
      const own = await sandbox.listDirectory("/proc/self/fd").catch(() => []);
      for (const number of [...own, "0", "3"]) {
        equal(await readByCall(sandbox, `/proc/self/fd/${number}`), undefined, `descriptor ${number}`);
      }
    },
  },
  {
    id: "paths.sandbox.rights",
    title: "rights of file calls",
    requirement: 'With `paths: "sandbox"` file calls read and write nothing that a command could not.',
    ...needed,
    async run({ sandbox }) {
      const listed = await sandbox.listDirectory("/proc").catch(() => []);
      const processes = listed.filter((name) => /^\d+$/.test(name)).map((pid) => `/proc/${pid}/environ`);
      const files = [
        "/etc/passwd",
        "/etc/shadow",
        "/etc/gshadow",
        "/root/.profile",
        "/root/.bashrc",
        "/proc/self/environ",
      ];
      for (const path of [...files, "/proc/1/environ", ...processes]) {
        const [byCall, byCommand] = [await readByCall(sandbox, path), await readByCommand(sandbox, path)];
        // A process may have ended, and /proc/self is another one in each.
        if (path.startsWith("/proc/"))
          check(!byCall || byCommand !== undefined, `${path} can be read, but not by a command`);
        else equal(byCall?.slice(0, 4096), byCommand, path);
      }
      const probe = 'if mkdir "$1/paths-probe" 2>/dev/null; then rmdir "$1/paths-probe"; echo yes; else echo no; fi';
      for (const directory of ["/", "/etc", "/usr", "/root", "/proc", "/sys", "/dev", "/tmp", "/var/tmp"]) {
        if ((await sandbox.stat(directory)) === null) continue;
        const expected = (await script(sandbox, probe, directory)).trim();
        const path = `${directory === "/" ? "" : directory}/paths-probe`;
        const made = await sandbox.makeDirectory(path).then(
          () => "yes",
          () => "no",
        );
        if (made === "yes") await sandbox.remove(path);
        equal(made, expected, `whether a directory can be made in ${directory}`);
      }
    },
  },
  {
    id: "paths.sandbox.refused",
    title: "what can't be removed or moved",
    requirement:
      "The work directory, and what contains it, can't be removed, renamed or copied over, whatever `paths` is.",
    ...needed,
    async run({ sandbox }) {
      const { workDir } = sandbox;
      await sandbox.writeFile("file", "x");
      const above = workDir.slice(0, workDir.lastIndexOf("/")) || "/";
      for (const path of [workDir, "/", above, "..", "."]) {
        await refuses("invalid_argument", `remove ${path}`, () => sandbox.remove(path, { recursive: true }));
        await refuses("invalid_argument", `rename ${path}`, () => sandbox.rename(path, "/tmp/elsewhere"));
        await refuses("invalid_argument", `copy over ${path}`, () => sandbox.copy("file", path));
      }
      equal(await sandbox.listDirectory(), ["file"], "what is left");
      await sandbox.writeFile("~/file", "x");
      equal(await script(sandbox, "ls"), "file\n~\n", "~ is a name like any other");
    },
  },
  {
    id: "paths.sandbox.kept",
    title: "the paths of a kept sandbox",
    requirement: "A kept sandbox has the same `paths` when it is reopened, and no others can be asked for.",
    needs: canReach,
    async run({ open, defer, harness }) {
      const first = await open({ paths: "sandbox", keep: true });
      const { id } = first;
      defer(async () => {
        await first.teardown();
        if (harness.remove) return harness.remove(id);
        return (await harness.open({ id, keep: false })).teardown();
      });
      await first.writeFile("file", "kept");
      await first.teardown();
      await refuses("invalid_argument", "other paths", () => open({ id, paths: "workdir" }));
      const second = await open({ id, paths: "sandbox" });
      equal(await second.listDirectory("/tmp").then(() => true), true, "reopened");
      equal((await second.exec({ argv: ["pwd"], cwd: "/tmp" })).stdout, "/tmp\n", "cwd");
      equal(await second.readFile("file"), "kept", "its file");
    },
  },
  {
    id: "paths.sandbox.fork",
    title: "the paths of a fork",
    requirement: "A fork has the `paths` of its origin.",
    ...needed,
    needs: (capabilities) => (capabilities.fork === "none" ? "capabilities.fork is none" : canReach(capabilities)),
    async run({ sandbox, defer }) {
      const fork = await sandbox.fork();
      defer(() => fork.teardown());
      await fork.writeFile("/tmp/paths-of-fork", "x");
      defer(() => sandbox.deleteFile("/tmp/paths-of-fork"));
      equal(await script(fork, "cat /tmp/paths-of-fork"), "x", "in the fork");
      equal(await sandbox.readFile("/tmp/paths-of-fork"), null, "in the origin");
    },
  },
];
