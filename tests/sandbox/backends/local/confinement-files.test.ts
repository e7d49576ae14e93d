import { spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  compileProbe,
  createManagers,
  type Job,
  MANAGERS,
  type Manager,
  type Managers,
} from "../../../support/local/manager.js";
import { createRepository } from "../../../support/scratch.js";

const CANARY = "canary-0f6b1d";
let managers: Managers;
beforeAll(() => {
  managers = createManagers();
});
afterAll(() => managers.remove());

describe.each(MANAGERS)("opened by %s", (name) => {
  let manager: Manager;
  beforeAll(() => {
    manager = managers.all.find((each) => each.name === name) as Manager;
  });
  const inside = async (script: string, job: Partial<Job> = {}): Promise<string> =>
    (await manager.run({ ...job, scripts: [script] })).results[0]?.stdout ?? "";
  /** Writes a file of this manager's, with the directories above it. */
  const put = (path: string, content = CANARY, mode = 0o600): string => {
    const file = join(manager.home, path);
    const missing = [];
    for (let parent = dirname(file); !existsSync(parent); parent = dirname(parent)) missing.unshift(parent);
    for (const directory of missing) {
      mkdirSync(directory);
      manager.own(directory);
    }
    writeFileSync(file, content);
    chmodSync(file, mode);
    manager.own(file);
    return file;
  };

  test("nothing of the host's files, homes, records and sockets is there", async () => {
    const repo = createRepository(join(manager.home, "repo"));
    for (const path of [".git/config-extra", ".git/hooks/post-checkout", "untracked"]) put(`repo/${path}`);
    manager.own(repo);
    const own = (path: string): void => {
      manager.own(path);
      for (const entry of readdirSync(path, { withFileTypes: true })) {
        if (entry.isDirectory()) own(join(path, entry.name));
        else manager.own(join(path, entry.name));
      }
    };
    own(repo);
    for (const path of ["file", "state/record", "here/file", "tmp/other", ".ssh/id_ed25519"]) put(path);
    const told = await inside(
      `grep -rslF "${CANARY}" /etc /root /home /run /var /mnt /srv /opt /media /tmp /glovebox "${manager.home}" 2>/dev/null
      for f in /etc/shadow /etc/sudoers /etc/ssh /var/run/docker.sock /run/dbus /run/user /boot /sys /var/lib /var/log; do
        [ -e "$f" ] && echo "there: $f"
      done
      ls -A "${manager.home}"; ls -A /home; ls -A /run`,
      { options: { repo }, cwd: join(manager.home, "here") },
    );
    expect(told).toBe("tmp\nsandbox\n");
  });

  test("only the work directory and private memory can be written", async () => {
    const told = await inside(
      "find / -path /proc -prune -o -path /usr -prune -o -writable -not -type l -print 2>/dev/null; touch /usr/x /etc/x /x; pwd",
    );
    const found = told.trim().split("\n");
    const workDir = found.pop() as string;
    const allowed = ["/dev/full", "/dev/null", "/dev/random", "/dev/shm", "/dev/tty", "/dev/urandom", "/dev/zero"];
    const meant = (path: string): boolean => path.startsWith("/dev/pts") || `${workDir}/`.startsWith(`${path}/`);
    expect(found.filter((path) => !meant(path)).sort()).toEqual([...allowed, "/home/sandbox", "/run"].sort());
    expect(found).toContain(workDir);
  });

  test("/tmp is its own: not the host's, not another sandbox's", async () => {
    const theirs = mkdtempSync(join(tmpdir(), "glovebox-canary-"));
    const mark = `glovebox-canary-${process.pid}-inside`;
    try {
      const told = await inside(`touch /tmp/${mark} /dev/shm/${mark} /run/${mark}; ls /tmp; ls -d "${theirs}" 2>&1`);
      expect(told).toContain(mark);
      expect(told).toContain("No such file");
      const again = await inside("ls -R /tmp /dev/shm /run");
      expect(again).not.toContain(mark);
      for (const directory of ["/tmp", "/dev/shm", "/run"]) expect(existsSync(join(directory, mark))).toBe(false);
    } finally {
      rmSync(theirs, { recursive: true });
    }
  });

  test("a file of the host cannot be linked into the tree", async () => {
    const source = dirname(put("shared/file"));
    const { results } = await manager.run({
      options: { mounts: [{ source, target: "/shared" }] },
      scripts: [
        "ln /usr/bin/true a; ln /etc/passwd b; ln /shared/file c; ln /glovebox/guest d; ls -A; cat /shared/file",
      ],
    });
    expect(results[0]?.stdout).toBe(CANARY);
    expect(results[0]?.stderr.match(/Invalid cross-device link|Operation not permitted/g)).toHaveLength(4);
  });

  test("no socket of the host can be reached, whatever it is named by", async () => {
    const probe = compileProbe("reach", managers.directory);
    const paths = [join(manager.home, "runtime", "bus"), join(tmpdir(), `glovebox-canary-${process.pid}.sock`)];
    put("runtime/nothing");
    let reached = 0;
    const servers = paths.map((path) => createServer(() => reached++).listen(path));
    await Promise.all(servers.map((server) => once(server, "listening")));
    for (const path of paths) chmodSync(path, 0o777);
    const nameless = `glovebox-canary-${process.pid}-${name.length}`;
    const listener = spawn(probe, ["--listen", nameless], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      await once(listener.stdout, "data");
      listener.stdout.on("data", () => reached++);
      for (const network of ["none", "full"] as const) {
        const told = await inside(`./probe ${paths.map((path) => `path:${path}`).join(" ")} abstract:${nameless}`, {
          options: { network },
          programs: { probe },
          env: { XDG_RUNTIME_DIR: dirname(paths[0] as string) },
        });
        const nothing = network === "none" ? "ECONNREFUSED" : "EPERM";
        expect(told).toBe(`path:${paths[0]} ENOENT\npath:${paths[1]} ENOENT\nabstract:${nameless} ${nothing}\n`);
      }
      expect(reached).toBe(0);
    } finally {
      listener.kill("SIGKILL");
      for (const server of servers) server.close();
    }
  });

  test("toolchains that PATH names work, credentials beside them are not there", async () => {
    const secrets = [
      ".ssh/id",
      ".aws/credentials",
      ".config/gh/hosts.yml",
      ".npmrc",
      ".cargo/credentials.toml",
      ".netrc",
    ];
    for (const path of [...secrets, ".local/share/keyring", ".nvm/token", "lib/x", ".local/lib/x"])
      put(`person/${path}`);
    const places = [".cargo/bin", ".nvm/versions/node/v1/bin", ".pyenv/shims", ".local/bin", "bin"];
    const say = (place: string): string => `#!/bin/sh\necho ran ${place}\n`;
    for (const [index, place] of places.entries()) put(`person/${place}/tool${index}`, say(place), 0o755);
    const alias = join(manager.home, "alias");
    symlinkSync(join(manager.home, "person"), alias);
    const real = join(manager.home, "person");
    for (const [HOME, base] of [
      [real, real],
      [alias, alias],
      [alias, real],
      [real, alias],
      ["/nonexistent", real],
    ] as const) {
      const PATH = [...places.map((place) => join(base, place)), base, manager.home, "/usr/bin", "/bin"].join(":");
      const told = await inside(
        `for i in 0 1 2 3 4; do tool$i; done; grep -rslF "${CANARY}" ${real} ${alias} 2>/dev/null; touch ${base}/bin/x 2>&1`,
        { env: { HOME, PATH, GLOVEBOX_HOME: join(manager.home, "state") } },
      );
      expect(told.split("\n").slice(0, 5)).toEqual(places.map((place) => `ran ${place}`));
      expect(told.split("\n").slice(5).join("\n")).toMatch(/^touch: .*Read-only file system\n$/);
    }
  });

  test("programs that ~/.local/bin links to work, with the files that they need and no others", async () => {
    const beside = '#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/../beside"\n';
    const say = (name: string): string => `#!/bin/sh\necho ${name}\n`;
    put("linked/.local/share/claude/versions/1.0", say("a file"), 0o755);
    put("linked/.local/share/claude/state.json");
    put("linked/.local/share/cursor/versions/1.0/bin/cursor", beside, 0o755);
    put("linked/.local/share/cursor/versions/1.0/beside", "a version\n", 0o644);
    put("linked/.local/share/cursor/auth.json");
    put("linked/.local/lib/node_modules/@some/tool/bin/cli.js", beside, 0o755);
    put("linked/.local/lib/node_modules/@some/tool/beside", "a package\n", 0o644);
    put("linked/.local/lib/node_modules/other/secret");
    put("linked/.local/share/pipx/venvs/tool/bin/tool", beside, 0o755);
    put("linked/.local/share/pipx/venvs/tool/beside", "an environment\n", 0o644);
    put("linked/.local/share/pipx/venvs/tool/pyvenv.cfg", "home = /usr/bin\n");
    put("linked/.local/share/pipx/secret");
    put("linked/.local/share/worked/versions/1/bin/tool", say("alone"), 0o755);
    put("linked/.local/share/worked/versions/1/.env");
    put("linked/.local/share/moving/versions/2.0/bin/tool", beside, 0o755);
    put("linked/.local/share/moving/versions/2.0/beside", "a current version\n", 0o644);
    put("linked/.local/share/moving/versions/1.0/secret");
    put("open/run", `#!/bin/sh\necho ${CANARY}\n`, 0o777);
    put("linked/.ssh/run", `#!/bin/sh\necho ${CANARY}\n`, 0o755);
    put("linked/.local/share/key", CANARY, 0o600);
    const share = "../share";
    const real = join(manager.home, "linked");
    const links: Record<string, string> = {
      claude: join(real, ".local/share/claude/versions/1.0"),
      cursor: `${share}/cursor/versions/1.0/bin/cursor`,
      npm: "../lib/node_modules/@some/tool/bin/cli.js",
      pipx: `${share}/pipx/venvs/tool/bin/tool`,
      worked: `${share}/worked/versions/1/bin/tool`,
      moving: `${share}/moving/current/bin/tool`,
      chain: "middle",
      middle: `${share}/claude/current`,
      ssh: "../../.ssh/run",
      public: join(manager.home, "open/run"),
      opened: `${share}/opened/run`,
      key: `${share}/key`,
      dead: "nowhere",
    };
    mkdirSync(join(real, ".local/bin"), { recursive: true });
    for (const [name, target] of Object.entries(links)) symlinkSync(target, join(real, ".local/bin", name));
    symlinkSync("versions/2.0", join(real, ".local/share/moving/current"));
    symlinkSync("versions/1.0", join(real, ".local/share/claude/current"));
    // Where anybody can write, directly and by another link.
    chmodSync(join(manager.home, "open"), 0o777);
    symlinkSync(join(manager.home, "open"), join(real, ".local/share/opened"));
    manager.own(real);
    const env = {
      HOME: real,
      PATH: `${join(real, ".local/bin")}:/usr/bin:/bin`,
      GLOVEBOX_HOME: join(manager.home, "state"),
    };
    const script = `for name in ${Object.keys(links).join(" ")}; do $name 2>/dev/null || echo no $name; done
      grep -rslF "${CANARY}" ${real}; touch ${real}/.local/share/cursor/versions/1.0/x 2>&1`;
    const told = (await inside(script, { env })).split("\n");
    expect(told.slice(0, 13)).toEqual([
      ...["a file", "a version", "a package", "an environment", "alone", "a current version", "a file", "a file"],
      ...["no ssh", "no public", "no opened", "no key", "no dead"],
    ]);
    expect(told.slice(13).join("\n")).toMatch(/^touch: .*Read-only file system\n$/);
  });

  test("programs in a prefix of npm below the home work, with their package and nothing else", async () => {
    const program = '#!/bin/sh\ncat "$(dirname "$(readlink -f "$0")")/../beside"\n';
    const real = join(manager.home, "global");
    for (const prefix of [".npm-global", "work"]) {
      put(`global/${prefix}/lib/node_modules/@some/agent/bin/cli.js`, program, 0o755);
      put(`global/${prefix}/lib/node_modules/@some/agent/beside`, `of ${prefix}\n`, 0o644);
      put(`global/${prefix}/lib/node_modules/other/secret`);
      put(`global/${prefix}/.npmrc`);
      mkdirSync(join(real, prefix, "bin"), { recursive: true });
      symlinkSync("../lib/node_modules/@some/agent/bin/cli.js", join(real, prefix, "bin", `agent${prefix}`));
    }
    manager.own(real);
    const env = {
      HOME: real,
      // As scripts put it together.
      PATH: `${join(real, "work")}/../.npm-global//bin/:${join(real, "work/bin")}:/usr/bin:/bin`,
      GLOVEBOX_HOME: join(manager.home, "state"),
    };
    const script = `agent.npm-global; agentwork 2>/dev/null || echo no agentwork; grep -rslF "${CANARY}" ${real}; true`;
    // A folder that is not hidden may be where somebody works.
    expect(await inside(script, { env })).toBe("of .npm-global\nno agentwork\n");
  });

  test("files that a shell or a tool reads at its start are read by nothing outside", async () => {
    const repo = createRepository(join(manager.home, "planted"));
    const names = [".bashrc", ".profile", ".npmrc", ".envrc", ".gitconfig", ".editorconfig", ".env", "package.json"];
    rmSync(join(repo, ".git"), { recursive: true });
    for (const each of names) put(`planted/${each}`, `touch ${manager.home}/pwned`);
    const watcher = spawn(
      compileProbe("watch-opens", managers.directory),
      names.map((each) => join(repo, each)),
      {
        stdio: ["ignore", "pipe", "inherit"],
      },
    );
    let told = "";
    watcher.stdout.on("data", (chunk: Buffer) => {
      told += chunk;
    });
    try {
      await expect.poll(() => told).toBe("watching\n");
      manager.own(repo);
      await inside("true", { options: { baseDir: repo }, cwd: repo, env: { BASH_ENV: join(repo, ".bashrc") } });
      expect(told).toBe("watching\n");
      readFileSync(join(repo, ".envrc"));
      await expect.poll(() => told).toBe(`watching\n${join(repo, ".envrc")}\n`);
    } finally {
      watcher.kill("SIGKILL");
    }
  });
});
