import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createLocalSandbox } from "../../../../src/sandbox/backends/local.js";
import {
  type Answer,
  compileProbe,
  createManagers,
  type Job,
  MANAGERS,
  type Manager,
  type Managers,
} from "../../../support/local/manager.js";
import { type HostProcess, processesWith } from "../../../support/processes/host-processes.js";

let managers: Managers;
beforeAll(() => {
  managers = createManagers();
});
afterAll(() => managers.remove());

/** The answers that the refused calls must get, in the probe's words. */
const REFUSED: Readonly<Record<string, readonly string[]>> = {
  EPERM: [
    ...["mount", "mount:bad", "remount", "umount", "umount:bad", "pivot_root", "chroot:bad", "open_tree:bad"],
    ...["move_mount:bad", "fsopen:bad", "fsconfig:bad", "fsmount:bad", "fspick:bad", "mount_setattr:bad"],
    ...["unshare user", "unshare mount", "unshare:bad", "setns:bad", "clone user", "clone net", "ptrace"],
    ...["process_vm_readv", "process_vm_writev", "kcmp", "bpf:bad", "perf_event_open:bad", "userfaultfd:bad"],
    ...["fanotify_init:bad", "keyctl", "add_key:bad", "request_key:bad", "open_by_handle_at:bad", "quotactl:bad"],
    ...["syslog:bad", "reboot:bad", "init_module:bad", "settimeofday:bad", "clock_settime:bad"],
    ...["TIOCSTI", "TIOCSTI:bad", "socket raw", "socket raw6"],
  ],
  ENOSYS: ["clone3:bad", "io_uring_setup:bad", "io_uring_enter:bad", "io_uring_register:bad", "openat2:bad"],
  EAFNOSUPPORT: ["socket packet", "socket vsock", "socket alg", "socket bluetooth"],
};

describe.each(MANAGERS)("opened by %s", (name) => {
  let manager: Manager;
  beforeAll(() => {
    manager = managers.all.find((each) => each.name === name) as Manager;
  });
  const inside = async (script: string, job: Partial<Job> = {}): Promise<string> =>
    (await manager.run({ ...job, scripts: [script] })).results[0]?.stdout ?? "";

  test("what a command does to the limits and the priority of process 1 does not reach the next command", async () => {
    const show = "ulimit -Hn; nice; taskset -p $$ | sed 's/.*: //'; ionice -p $$; chrt -p $$ | sed 's/.*: //'";
    const spoil = [
      "prlimit --pid 1 --nofile=64:64",
      "renice -n 19 -p 1",
      "ionice -c 3 -p 1",
      "chrt --batch -p 0 1",
      "taskset -p 1 1",
    ];
    // More of them than are kept in waiting.
    const scripts = [show, ...spoil.flatMap((script) => [script, show, show])];
    const { results } = await manager.run({ scripts });
    const told = results.map(({ stdout }) => stdout);
    expect(results.filter((_, index) => index % 3 === 1).map(({ exitCode }) => exitCode)).toEqual(spoil.map(() => 0));
    expect(told[0]).toMatch(/^\d+\n-?\d+\n/);
    expect(told.filter((_, index) => index % 3 !== 1)).toEqual(Array.from({ length: 11 }, () => told[0]));
  });

  test("a command, its children and its daemons have no capability and no way to one", async () => {
    const show = "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status";
    const told = await inside(`${show}; sh -c "${show}"; (setsid sh -c "${show}" & wait)`);
    const none = ["Inh", "Prm", "Eff", "Bnd", "Amb"].map((set) => `Cap${set}:\t0000000000000000`);
    const one = [...none, "NoNewPrivs:\t1", "Seccomp:\t2"].join("\n");
    expect(told.trim().split(/\n(?=CapInh)/)).toEqual([one, one, one]);
  });

  test("dangerous system calls are refused", async () => {
    const programs = { probe: compileProbe("refused-calls", managers.directory) };
    const told = (await inside("./probe", { programs })).trim().split("\n");
    const expected = Object.entries(REFUSED).flatMap(([error, calls]) => calls.map((call) => `${call} ${error}`));
    if (process.arch === "x64") expected.push("int80 Bad system call", "x32 ENOSYS");
    expect(told.filter((line) => line !== "kill 1 done").sort()).toEqual(expected.sort());
  });

  test("nothing that it makes runs as its owner, and no device can be made", async () => {
    const programs = { probe: compileProbe("set-id", managers.directory) };
    const told = (await inside("./probe; find . -perm /6000 -o -type b -o -type c", { programs })).trim().split("\n");
    const harmless = /^[A-Za-z_2 ]+: (0|EPERM|ENOSYS)$/;
    expect(told.filter((line) => !harmless.test(line))).toEqual([]);
    expect(told).toContain("plain: 0");
    expect(told).toContain("chmod: EPERM");
  });

  test("signals to everything reach nothing outside the call", async () => {
    const { results } = await manager.run({
      scripts: ["kill -KILL 1; kill -TERM 1; kill -STOP 1; kill -STOP -1; kill -KILL -1; echo on", "echo still here"],
    });
    expect(results.map(({ stdout }) => stdout)).toEqual(["on\n", "still here\n"]);
  });

  test("processes of the host cannot be seen", async () => {
    const told = await inside("cat /proc/[0-9]*/cmdline | tr '\\0' '\\n'; ls -d /proc/[0-9]*");
    expect(told).not.toContain("manage.mjs");
    expect(told).not.toContain("bwrap");
    const pids = told.split("\n").filter((line) => /^\/proc\/\d+$/.test(line));
    expect(pids.length).toBeLessThan(6);
    expect(pids).toContain("/proc/1");
  });

  test("no variable of the manager is in any environment", async () => {
    const env = { CANARY_TOKEN: "cafe-and-secret" };
    const told = await inside("env; for f in /proc/[0-9]*/environ /proc/thread-self/environ; do cat $f; done", { env });
    expect(told).toContain("HOME=/home/sandbox");
    expect(told).not.toMatch(/CANARY_TOKEN|cafe-and-secret|GLOVEBOX_HOME/);
  });

  test("no setting of the kernel can be written and none of its memory read", async () => {
    const told = await inside(`
      for f in $(find /proc/sys /proc/irq /proc/fs /proc/acpi /proc/sysrq-trigger /proc/mtrr /sys -type f 2>/dev/null); do
        if true 2>/dev/null >>"$f"; then echo "writable $f"; fi
      done
      for f in /proc/kcore /proc/kmsg /proc/kpageflags /proc/1/mem /proc/1/environ /dev/mem /dev/kmsg /dev/vda /dev/sda; do
        if head -c 1 "$f" >/dev/null 2>&1; then echo "readable $f"; fi
      done
      find /proc/sys -type f 2>/dev/null | wc -l; ls /sys 2>&1`);
    expect(told).not.toMatch(/writable|readable/);
    expect(Number(/^\d+$/m.exec(told)?.[0])).toBeGreaterThan(100);
    expect(told).toMatch(/No such file/);
  });

  test("programs that run as root on the host gain nothing", async () => {
    const told = await inside(`
      ls -l /usr/bin/su /usr/bin/mount | cut -c 1-10
      mount -t tmpfs none /tmp 2>&1; su -c id 2>&1 </dev/null; echo; id -u`);
    expect(told).toContain("-rwsr-xr-x");
    expect(told).not.toContain("uid=0");
    expect(told.trim()).toMatch(/1000$/);
  });

  test("a crash leaves no memory image", async () => {
    const told = await inside('ulimit -c unlimited 2>/dev/null; sh -c "kill -SEGV \\$\\$"; echo "ended $?"; ls -a', {
      programs: { crash: compileProbe("refused-calls", managers.directory) },
    });
    expect(told).toMatch(/ended 139/);
    expect(told).not.toMatch(/core/);
  });

  test("no descriptor of the manager is in any process of the sandbox, and none of them is root", async () => {
    const canary = join(manager.home, "canary");
    mkdirSync(canary, { recursive: true });
    writeFileSync(join(canary, "file"), "canary");
    const directory = openSync(canary, "r");
    const file = openSync(join(canary, "file"), "r");
    const seen: { of: HostProcess; targets: string[] }[] = [];
    const answer = await whileInside(manager, { descriptors: { 40: directory, 41: file } }, (found) => {
      seen.push(...found.map((of) => ({ of, targets: descriptorsOf(of.pid) })));
    }).finally(() => [directory, file].forEach(closeSync));
    expect(answer.results[0]?.stdout.trim().split("\n")).toEqual(["0", "1", "2", "3"]);
    expect(seen.length).toBeGreaterThanOrEqual(4);
    expect(seen.flatMap(({ targets }) => targets).filter((target) => target.includes(canary))).toEqual([]);
    expect(seen.filter(({ of }) => of.uids.includes(0))).toEqual([]);
  });
});

test("a terminal cannot be typed into from inside", async () => {
  await using sandbox = await createLocalSandbox();
  await sandbox.writeFile("probe", readFileSync(compileProbe("refused-calls", managers.directory)), { mode: 0o755 });
  const probe = await sandbox.spawn({ argv: ["./probe"], pty: { cols: 80, rows: 24 } });
  let told = "";
  for await (const chunk of probe.stdout) told += Buffer.from(chunk).toString();
  expect(told).toContain("TIOCSTI EPERM\r\n");
  expect((await probe.wait()).exitCode).toBe(0);
});

test("one call cannot end another", async () => {
  await using sandbox = await createLocalSandbox();
  const daemon = await sandbox.spawn({ argv: ["sh", "-c", "read line; echo got $line"], stdin: "pipe" });
  await sandbox.shell("kill -KILL -1; kill -KILL 1 2 3 4 5 6 7 8 9");
  const writer = daemon.stdin?.getWriter();
  await writer?.write(Buffer.from("this\n"));
  const { value } = await daemon.stdout.getReader().read();
  expect(Buffer.from(value ?? []).toString()).toBe("got this\n");
});

function descriptorsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`));
}

/** Runs a command that lists its descriptors and waits; meanwhile gives every process of the sandbox, as the host sees it. */
async function whileInside(
  manager: Manager,
  job: Partial<Job>,
  look: (processes: HostProcess[]) => void,
): Promise<Answer> {
  const marker = `wait-${process.pid}-${manager.name.length}`;
  const script = `ls /proc/self/fd; for i in $(seq 400); do [ -e ${marker} ] && exit 0; sleep 0.1; done; exit 1`;
  const answer = manager.run({ ...job, scripts: [script] });
  const waiting = (): HostProcess | undefined => processesWith(marker).find(({ argv }) => argv[0]?.endsWith("sh"));
  await expect.poll(waiting).toBeDefined();
  const command = waiting() as HostProcess;
  const workDir = readlinkSync(`/proc/${command.pid}/cwd`);
  try {
    const bwrapAndGuest = processesWith(workDir).filter(({ argv }) => !argv.includes(marker));
    look([...bwrapAndGuest, command]);
  } finally {
    writeFileSync(join(workDir, marker), "");
  }
  const ended = await answer;
  expect(ended.results[0]?.exitCode).toBe(0);
  expect(existsSync(workDir)).toBe(false);
  return ended;
}
