import {
  chownSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createManagers, MANAGERS, type Manager, type Managers } from "../../../support/local/manager.js";
import { createRepository, git } from "../../../support/scratch.js";
import { treeDigest } from "../../../support/tree-digest.js";

let managers: Managers;
beforeAll(() => {
  managers = createManagers();
});
afterAll(() => managers.remove());

function ownAll(path: string, own: (path: string) => void): void {
  if (!lstatSync(path).isSymbolicLink()) own(path);
  if (!lstatSync(path).isDirectory()) return;
  for (const name of readdirSync(path)) ownAll(join(path, name), own);
}

/** What somebody inside would try on a git directory that the host's git will read later. */
const ATTACK = `
  echo '[core] fsmonitor = touch pwned' >>.git/config; echo x >.git/hooks/post-checkout; touch .git/x; rm -rf .git
  mv .git .old; mv .git/hooks .git/h; ln -sf /tmp .git; rmdir .git; chmod 777 .git .git/config; rm .git
  cp -r .git .new 2>/dev/null; mv -T .new .git; mkdir -p .git/hooks/x; touch made; cat .git/HEAD`;

describe.each(MANAGERS)("opened by %s", (name) => {
  let manager: Manager;
  beforeAll(() => {
    manager = managers.all.find((each) => each.name === name) as Manager;
  });

  test.each(["a directory", "a file"])("a git directory in the user's own one stays as it is: %s", async (form) => {
    const repo = createRepository(join(manager.home, `base-${form.replaceAll(" ", "-")}`));
    const aside = `${repo}-git`;
    if (form === "a file") {
      renameSync(join(repo, ".git"), aside);
      writeFileSync(join(repo, ".git"), `gitdir: ${aside}\n`);
      ownAll(aside, manager.own);
    }
    ownAll(repo, manager.own);
    const before = treeDigest(repo);
    const commit = git(repo, "-c", "safe.directory=*", "rev-parse", "HEAD");
    const { results, workDir } = await manager.run({ options: { baseDir: repo }, scripts: [ATTACK] });
    expect(workDir).toBe(repo);
    const { made, ...after } = treeDigest(repo);
    const kept = Object.entries(after).filter(([path]) => path !== ".new" && !path.startsWith(".new/"));
    expect(Object.fromEntries(kept)).toEqual(before);
    expect(made, results[0]?.stderr).toBeDefined();
    expect(git(repo, "-c", "safe.directory=*", "rev-parse", "HEAD")).toBe(commit);
  });

  test("a link in the place of a git directory, which could be replaced, is refused", async () => {
    const repo = createRepository(join(manager.home, "base-link"));
    renameSync(join(repo, ".git"), join(repo, "real-git"));
    symlinkSync("real-git", join(repo, ".git"));
    manager.own(repo);
    await expect(manager.run({ options: { baseDir: repo }, scripts: [] })).rejects.toThrow(
      /unsupported.*\.git is a link/,
    );
  });

  test("a git directory that was made since is protected when the sandbox is opened again", async () => {
    const base = join(manager.home, "base-again");
    mkdirSync(base);
    manager.own(base);
    const { id } = await manager.run({ options: { baseDir: base, keep: true }, scripts: [] });
    renameSync(join(createRepository(`${base}-made`), ".git"), join(base, ".git"));
    ownAll(base, manager.own);
    const before = treeDigest(join(base, ".git"));
    await manager.run({ options: { id, keep: false }, scripts: [ATTACK] });
    expect(treeDigest(join(base, ".git"))).toEqual(before);
  });

  test("no other user of the machine can look into a sandbox's directory", async () => {
    const repo = createRepository(join(manager.home, "private"));
    ownAll(repo, manager.own);
    const shapes = [{}, { repo }, { repo, workspace: "overlay" }, { repo, workspace: "copy" }] as const;
    for (const options of shapes) {
      const { results } = await manager.run({ options, scripts: ["stat -c %a .; ls"] });
      expect(results[0]?.stdout).toBe("repo" in options ? "700\na.txt\nsub\n" : "700\n");
    }
  });

  test("a mount is read-only unless it is asked to be writable", async () => {
    const paths = ["fixed", "open"].map((each) => join(manager.home, each)) as [string, string];
    for (const path of paths) {
      mkdirSync(path);
      writeFileSync(join(path, "file"), "content");
      ownAll(path, manager.own);
    }
    const { results } = await manager.run({
      options: { mounts: [{ source: paths[0] }, { source: paths[1], target: "/data", writable: true }] },
      scripts: [
        `cat ${paths[0]}/file; touch ${paths[0]}/new; echo x >${paths[0]}/file; cp ${paths[0]}/file /data/copy; ls -A /data`,
      ],
    });
    expect(results[0]?.stdout).toBe("contentcopy\nfile\n");
    expect(results[0]?.stderr.match(/Read-only file system/g)).toHaveLength(2);
    expect(treeDigest(paths[0])).toEqual({ file: expect.stringContaining("100644") });
    expect(readFileSync(join(paths[1], "copy"), "utf8")).toBe("content");
    expect(statSync(join(paths[1], "copy")).uid).toBe(statSync(paths[1]).uid);
  });
});

describe.runIf(process.getuid?.() === 0)("a root manager", () => {
  test.each(["baseDir", "mounts"])("leaves what was made inside to the owner of the tree: %s", async (option) => {
    const manager = managers.all[0] as Manager;
    const source = join(manager.home, `theirs-${option}`);
    mkdirSync(source);
    writeFileSync(join(source, "file"), "content");
    writeFileSync(join(source, "roots"), "root's", { mode: 0o600 });
    for (const path of [source, join(source, "file")]) chownSync(path, 12_345, 12_346);
    const target = option === "mounts" ? "/data" : source;
    await manager.run({
      options: option === "mounts" ? { mounts: [{ source, target, writable: true }] } : { baseDir: source },
      scripts: [
        `cd ${target}; mkdir -p new/deep; echo x >new/deep/file; echo more >>file; cat roots; echo x >>roots; chown 0 file`,
      ],
    });
    const owners = ["file", "new", "new/deep", "new/deep/file", "roots"].map((path) => {
      const { uid, gid } = statSync(join(source, path));
      return `${uid}:${gid}`;
    });
    expect(owners).toEqual(["12345:12346", "12345:12346", "12345:12346", "12345:12346", "0:0"]);
    expect(readFileSync(join(source, "file"), "utf8")).toBe("contentmore\n");
    expect(readFileSync(join(source, "roots"), "utf8")).toBe("root's");
  });
});
