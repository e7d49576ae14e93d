import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { hintFor } from "../../../../src/sandbox/jail/hint.js";
import { describeUnless } from "../../../support/describe-unless.js";
import { createManagers, type Manager, type Managers } from "../../../support/local/manager.js";

/** Root without CAP_SYS_ADMIN, as most containers have it. */
const BARE = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin"];

function whyNot(): string | undefined {
  if (process.getuid?.() !== 0) return "only root can be root without a capability";
  const missing = ["/usr/bin/setpriv", "/usr/bin/unshare", "/usr/bin/bwrap"].filter((path) => !existsSync(path));
  return missing.length > 0 ? `missing: ${missing.join(", ")}` : undefined;
}

describeUnless(whyNot(), "root without CAP_SYS_ADMIN", {}, () => {
  let managers: Managers;
  let manager: Manager;
  beforeAll(() => {
    managers = createManagers();
    manager = managers.all[0] as Manager;
  });
  afterAll(() => managers.remove());

  /** Starts what follows where an engine's files are mounted. */
  function asInContainer(): string[] {
    const name = join(managers.directory, "hostname");
    writeFileSync(name, "somewhere\n");
    const script = `mount -t tmpfs tmpfs /run && touch /run/.containerenv && mount --bind ${name} /etc/hostname && mount -t tmpfs tmpfs /sys/fs/cgroup && exec ${BARE.join(" ")} "$@"`;
    return ["unshare", "--mount", "sh", "-c", script, "sh"];
  }

  test("is refused outside of a container: commands would be root", async () => {
    await expect(manager.run({ through: BARE, scripts: ["id"] })).rejects.toThrow(
      /no_isolation: Glovebox runs as root without CAP_SYS_ADMIN.*\(run it as an ordinary user/,
    );
  });

  test("opens one in a container: nothing of /proc is writable, and nothing of the outer one visible", async () => {
    const { results } = await manager.run({
      through: asInContainer(),
      env: { MARKER: "outer" },
      scripts: [
        "id -u; grep -h CapEff /proc/self/status; echo made > file && stat -c %u file",
        "find /proc -type f -perm -200 2>/dev/null | while read -r file; do (: >> $file) 2>/dev/null && echo $file; done; echo done",
        "ls /glovebox/proc 2>&1; cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n' | grep MARKER; echo done",
      ],
    });
    expect(results.map(({ stdout }) => stdout)).toEqual([
      "1000\nCapEff:\t0000000000000000\n1000\n",
      "done\n",
      "ls: cannot open directory '/glovebox/proc': Permission denied\ndone\n",
    ]);
  });

  test("can't limit the number of processes without a control group: the kernel counts none of root", async () => {
    await expect(manager.run({ through: asInContainer(), options: { limits: { pids: 64 } } })).rejects.toThrow(
      /unsupported: .*limits\.pids \(64\): the kernel doesn't count the processes of root/,
    );
  });
});

const DOCKER = { engine: "Docker", isFiltered: true, hasMaskedProc: true } as const;
const COMPLAINTS = [
  "bwrap: No permissions to create new namespace, likely because the kernel does not allow non-privileged user namespaces.",
  "bwrap: Can't mount proc on /newroot/proc: Operation not permitted",
  "bwrap: pivot_root: Operation not permitted",
  "bwrap: setting up uid map: Operation not permitted",
];

test.each(COMPLAINTS)("the hint in a container is its command, elsewhere a setting: %s", (complaint) => {
  const opener = { container: DOCKER, who: "user", canMapRoot: false } as const;
  expect(hintFor(complaint, opener)).toBe(
    "start the container with: docker run --security-opt seccomp=unconfined --security-opt systempaths=unconfined",
  );
  expect(hintFor(complaint, { ...opener, who: "bare-root" })).toMatch(/systempaths=unconfined --user 1000:1000$/);
  expect(hintFor(complaint, { ...opener, container: undefined })).toMatch(/apparmor_restrict_unprivileged_userns=0/);
});
