import { chmod, mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from "node:fs/promises";
import { isAbsolute, join } from "node:path";
import { check, equal, equalBytes, refuses, within } from "../assert.js";
import { noise } from "../bytes.js";
import { script } from "../script.js";
import type { ConformanceCase } from "../types.js";
import { AWKWARD_NAMES } from "./files.js";

export const directoryCases: readonly ConformanceCase[] = [
  {
    id: "directories.export",
    title: "exporting a directory",
    requirement:
      "`exportDirectory` copies content, permission bits, links and empty directories exactly, to the path it returns.",
    async run({ sandbox, hostDirectory }) {
      const bytes = noise(200_000, 51);
      await sandbox.uploadFiles([
        { path: "tree/bytes", content: bytes },
        { path: "tree/sub/deep/run", content: "#!/bin/sh\n", mode: 0o755 },
        { path: "tree/private", content: "p", mode: 0o600 },
        { path: "tree/zero", content: "" },
      ]);
      await script(
        sandbox,
        "mkdir tree/void && ln -s sub/deep/run tree/link && ln -s ../bytes tree/sub/up && echo x > beside",
      );
      const target = join(await hostDirectory(), "out");
      const path = await sandbox.exportDirectory("tree", target);
      check(isAbsolute(path), `it returned ${path}, which is not absolute`);
      equal((await readdir(path)).sort(), ["bytes", "link", "private", "sub", "void", "zero"], "names");
      equalBytes(await readFile(join(path, "bytes")), bytes, "bytes");
      equal((await readFile(join(target, "zero"))).length, 0, "size of zero");
      equal(await modeOf(join(path, "sub/deep/run")), "755", "mode of sub/deep/run");
      equal(await modeOf(join(path, "private")), "600", "mode of private");
      equal(await readdir(join(path, "void")), [], "void");
      equal(await readlink(join(path, "link")), "sub/deep/run", "link");
      equal(await readlink(join(path, "sub/up")), "../bytes", "sub/up");
    },
  },
  {
    id: "directories.export-names",
    title: "exporting awkward names",
    requirement: "Names stay the same on export and on refresh.",
    async run({ sandbox, hostDirectory }) {
      for (const name of AWKWARD_NAMES) await sandbox.writeFile(`tree/${name}`, name);
      const path = await sandbox.exportDirectory("tree", join(await hostDirectory(), "out"));
      equal((await readdir(path)).sort(), [...AWKWARD_NAMES].sort(), "names outside");
      await sandbox.refreshFromHost(path, "back");
      equal(await sandbox.listDirectory("back"), [...AWKWARD_NAMES].sort(), "names after the refresh");
      for (const name of AWKWARD_NAMES) equal(await sandbox.readFile(`back/${name}`), name, `content of ${name}`);
    },
  },
  {
    id: "directories.export-onto-empty",
    title: "exporting onto an empty directory",
    requirement: "`exportDirectory` accepts an existing empty directory.",
    async run({ sandbox, hostDirectory }) {
      await sandbox.writeFile("tree/file", "x");
      const target = await hostDirectory();
      await sandbox.exportDirectory("tree", target);
      equal(await readdir(target), ["file"], "names");
    },
  },
  {
    id: "directories.export-onto-full",
    title: "exporting onto existing files",
    requirement: "`exportDirectory` onto a full directory, a file or a link is `conflict` and leaves it alone.",
    async run({ sandbox, hostDirectory }) {
      await sandbox.writeFile("tree/mine", "inside");
      const target = await hostDirectory();
      await writeFile(join(target, "mine"), "outside");
      await refuses("conflict", "onto a full directory", () => sandbox.exportDirectory("tree", target));
      await refuses("conflict", "onto a file", () => sandbox.exportDirectory("tree", join(target, "mine")));
      const empty = await hostDirectory();
      const link = join(await hostDirectory(), "link");
      await symlink(empty, link);
      await refuses("conflict", "onto a link", () => sandbox.exportDirectory("tree", link));
      equal(await readdir(empty), [], "behind the link");
      equal(await readdir(target), ["mine"], "names");
      equal(await readFile(join(target, "mine"), "utf8"), "outside", "content");
    },
  },
  {
    id: "directories.export-missing",
    title: "exporting a missing directory",
    requirement: "Exporting a missing directory is `not_found`, and nothing is made on the host.",
    async run({ sandbox, hostDirectory }) {
      const host = await hostDirectory();
      await refuses("not_found", "export", () => sandbox.exportDirectory("missing", join(host, "out")));
      equal(await readdir(host), [], "names outside");
      await sandbox.makeDirectory("missing");
      await sandbox.exportDirectory("missing", join(host, "out"));
      equal(await readdir(host), ["out"], "names outside once it exists");
    },
  },
  {
    id: "directories.export-hostile-links",
    title: "exporting links that lead outside",
    requirement: "Links in an exported tree never make the copy read or write anywhere but below its target.",
    async run({ sandbox, hostDirectory }) {
      const host = await hostDirectory();
      await mkdir(join(host, "victim"));
      await writeFile(join(host, "victim/canary"), "host content");
      await script(
        sandbox,
        'mkdir tree && cd tree && ln -s "$1/victim" abs && ln -s ../victim rel && ln -s "$1/victim/new" make && ln -s / root && echo x > file',
        host,
      );
      const target = join(host, "out");
      const isDone = await sandbox.exportDirectory("tree", target).then(
        () => true,
        () => false,
      );
      equal(await readdir(join(host, "victim")), ["canary"], "the victim's names");
      equal(await readFile(join(host, "victim/canary"), "utf8"), "host content", "the victim's content");
      if (isDone) equal(await readFile(join(target, "file"), "utf8"), "x\n", "the plain file");
      else await refuses("path_confinement", "export", () => sandbox.exportDirectory("tree", join(host, "again")));
    },
  },
  {
    id: "directories.export-link-root",
    title: "exporting through a link",
    requirement: "Exporting through a link that leads outside is `path_confinement`.",
    async run({ sandbox, hostDirectory }) {
      const host = await hostDirectory();
      await script(sandbox, "ln -s /etc out");
      await refuses("path_confinement", "export", () => sandbox.exportDirectory("out", join(host, "out")));
      equal(await readdir(host), [], "names outside");
    },
  },
  {
    id: "directories.export-power",
    title: "exporting special bits and FIFOs",
    requirement: "Export strips setuid, setgid and sticky bits, leaves FIFOs out and does not hang on them.",
    async run({ sandbox, hostDirectory }) {
      // If the bits can't even be set in the sandbox, there is nothing to strip.
      const text =
        "mkdir -p tree/sticky && echo x > tree/tool && mkfifo tree/fifo && chmod 755 tree/tool && " +
        "{ chmod u+s,g+s tree/tool; chmod 1777 tree/sticky; :; }";
      await script(sandbox, text);
      const target = join(await hostDirectory(), "out");
      await within(30_000, "export", sandbox.exportDirectory("tree", target));
      equal((await readdir(target)).sort(), ["sticky", "tool"], "names");
      equal(await modeOf(join(target, "tool")), "755", "mode of tool");
      equal((await stat(join(target, "sticky"))).mode & 0o7000, 0, "special bits of sticky");
    },
  },
  {
    id: "directories.refresh",
    title: "refreshing a directory",
    requirement: "`refreshFromHost` copies content, bits, links and empty directories in, over existing files.",
    async run({ sandbox, hostDirectory }) {
      const host = await hostDirectory();
      const bytes = noise(200_000, 52);
      await mkdir(join(host, "sub/void"), { recursive: true });
      await writeFile(join(host, "bytes"), bytes);
      await writeFile(join(host, "sub/run"), "#!/bin/sh\necho ran\n");
      await chmod(join(host, "sub/run"), 0o755);
      await symlink("sub/run", join(host, "link"));
      await sandbox.writeFile("tree/bytes", "old");
      await sandbox.writeFile("tree/kept", "kept");
      await sandbox.refreshFromHost(host, "tree");
      equal(await sandbox.listDirectory("tree"), ["bytes", "kept", "link", "sub"], "names");
      equalBytes(await sandbox.readBytes("tree/bytes"), bytes, "bytes");
      equal(await sandbox.readFile("tree/kept"), "kept", "what only the sandbox had");
      equal((await sandbox.exec({ argv: ["tree/link"] })).stdout, "ran\n", "the program, by its link");
      equal(await sandbox.listDirectory("tree/sub"), ["run", "void"], "sub");
      await script(sandbox, "echo more >> tree/bytes && rm -r tree");
    },
  },
  {
    id: "directories.refresh-missing",
    title: "refreshing from a missing path",
    requirement: "Refreshing from a missing host path is `not_found`, and the sandbox does not change.",
    async run({ sandbox, hostDirectory }) {
      await sandbox.writeFile("tree/file", "x");
      const missing = join(await hostDirectory(), "missing");
      await refuses("not_found", "refresh", () => sandbox.refreshFromHost(missing, "tree"));
      equal(await sandbox.listDirectory("tree"), ["file"], "names in the sandbox");
    },
  },
  {
    id: "directories.refresh-secrets",
    title: "refreshing links",
    requirement: "A link in a host directory is never followed: its target is not copied.",
    async run({ sandbox, hostDirectory }) {
      const [host, other] = [await hostDirectory(), await hostDirectory()];
      await writeFile(join(other, "secret"), "host secret");
      await writeFile(join(host, "file"), "x");
      await symlink(join(other, "secret"), join(host, "to-file"));
      await symlink(other, join(host, "to-dir"));
      const call = sandbox.refreshFromHost(host, "tree");
      const isDone = await call.then(
        () => true,
        () => false,
      );
      if (isDone) equal(await sandbox.readFile("tree/file"), "x", "the plain file");
      else await refuses("path_confinement", "refresh", () => call);
      for (const path of ["tree/to-file", "tree/to-dir/secret"]) {
        const seen = await sandbox.readFile(path).catch(() => null);
        check(seen !== "host secret", `${path} has the content of a file that was only linked`);
      }
      const copied = await sandbox.exec({ argv: ["grep", "-r", "host secret", "tree"] });
      equal(copied.stdout, "", "copies of the secret in the sandbox");
    },
  },
  {
    id: "directories.refresh-through-link",
    title: "refreshing through a link",
    requirement: "Refreshing through a link that leads outside is `path_confinement`, and nothing is written there.",
    async run({ sandbox, hostDirectory }) {
      const [host, victim] = [await hostDirectory(), await hostDirectory()];
      await mkdir(join(host, "sub"));
      await writeFile(join(host, "sub/file"), "x");
      await script(sandbox, 'ln -s "$1" out && mkdir tree && ln -s "$1" tree/sub', victim);
      await refuses("path_confinement", "onto a link", () => sandbox.refreshFromHost(host, "out"));
      await sandbox.refreshFromHost(host, "tree").catch(() => undefined);
      equal(await readdir(victim), [], "the victim's names");
    },
  },
  {
    id: "directories.round-trip",
    title: "export and refresh",
    requirement: "A large tree is the same after export and refresh.",
    async run({ sandbox, hostDirectory }) {
      const text =
        "mkdir -p t/a/b && cd t && i=0; while [ $i -lt 300 ]; do echo content $i > a/f$i; i=$((i+1)); done; " +
        'n=$(printf %0150d 7); mkdir -p "a/b/$n/$n"; echo deep > "a/b/$n/$n/$n"; ln -s a/f1 l';
      await script(sandbox, text);
      const path = await sandbox.exportDirectory("t", join(await hostDirectory(), "out"));
      await sandbox.refreshFromHost(path, "u");
      const sum = "find . -type f | sort | xargs md5sum; find . | sort | md5sum; ls -l l | sed 's/.* l /l /'";
      const before = await script(sandbox, `cd t && ${sum}`);
      check(before.split("\n").length > 300, `the tree is not what it should be: ${before}`);
      equal(await script(sandbox, `cd u && ${sum}`), before, "names and sums");
    },
  },
];

async function modeOf(path: string): Promise<string> {
  return ((await stat(path)).mode & 0o7777).toString(8);
}
