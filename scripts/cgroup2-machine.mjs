import { spawn } from "node:child_process";
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { run } from "./processes.mjs";
import { expectSuccess } from "./step.mjs";

const MIB = 1 << 20;
/** The first part of the disk is the payload, an archive; the second is the system. */
const PAYLOAD = { start: MIB, size: 64 * MIB };
const SYSTEM = { start: 65 * MIB, size: 1500 * MIB };
/** The cloud kernel has NVMe and ext4 built in, so it needs no initramfs. */
const PACKAGES = [
  ...["systemd", "systemd-sysv", "dbus", "dbus-user-session", "libpam-systemd", "linux-image-cloud-amd64"],
  ...["bubblewrap", "git", "nodejs", "e2fsprogs", "kmod"],
];
/** What takes long under emulation, and no test needs. */
const MASKED = [
  ...["systemd-udevd.service", "systemd-udevd-kernel.socket", "systemd-udevd-control.socket"],
  ...["systemd-udev-trigger.service", "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer"],
  ...["e2scrub_all.timer", "e2scrub_reap.service", "fstrim.timer", "getty.target", "systemd-random-seed.service"],
  ...["systemd-pstore.service", "systemd-hwdb-update.service", "systemd-journal-flush.service"],
];
const UNIT = `[Unit]
After=systemd-logind.service user@1000.service
Requires=systemd-logind.service
Wants=user@1000.service
[Service]
Type=oneshot
ExecStart=/bin/sh -c 'mkdir -p /payload; tar -C /payload -xf /dev/nvme0n1p1; sh /payload/main.sh >/dev/ttyS0 2>&1; systemctl poweroff --force --force'
`;

/** The machine's disk and kernel. Makes them first if they are missing, which takes some minutes and the network. */
export async function ensureMachine(progress = () => {}) {
  const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "glovebox", "test-images");
  const machine = { disk: join(folder, "cgroup2-1.img"), kernel: join(folder, "cgroup2-1.kernel") };
  if (existsSync(machine.disk)) return machine;
  const scratch = join(folder, `building-${process.pid}`);
  const system = join(scratch, "root");
  mkdirSync(scratch, { recursive: true });
  try {
    progress("downloading and installing Debian packages");
    const include = `--include=${PACKAGES.join(",")}`;
    await must("mmdebstrap", ["--quiet", "--variant=minbase", "--format=directory", include, "trixie", system]);
    progress("making the disk");
    const kernel = readdirSync(join(system, "boot")).find((name) => name.startsWith("vmlinuz-"));
    cpSync(join(system, "boot", kernel), machine.kernel);
    await adapt(system);
    const disk = join(scratch, "disk");
    writeFileSync(disk, "");
    truncateSync(disk, SYSTEM.start + SYSTEM.size);
    const where = ["-E", `offset=${SYSTEM.start}`, "-d", system, disk, `${SYSTEM.size / MIB}M`];
    await must("mke2fs", ["-q", "-F", "-t", "ext4", "-O", "^has_journal", ...where]);
    writePartitions(disk);
    renameSync(disk, machine.disk);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  return machine;
}

/** A user whose systemd runs without a login, and a unit that runs the payload and switches the machine off. */
async function adapt(system) {
  await must("chroot", [system, "useradd", "-m", "-u", "1000", "-s", "/bin/sh", "user"]);
  const units = join(system, "etc", "systemd", "system");
  const write = (path, text) => {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  };
  write(join(system, "var", "lib", "systemd", "linger", "user"), "");
  write(join(system, "etc", "fstab"), "/dev/nvme0n1p2 / ext4 defaults 0 0\n");
  write(join(units, "glovebox-test.service"), UNIT);
  mkdirSync(join(units, "multi-user.target.wants"), { recursive: true });
  symlinkSync("../glovebox-test.service", join(units, "multi-user.target.wants", "glovebox-test.service"));
  for (const name of MASKED) {
    rmSync(join(units, name), { force: true });
    symlinkSync("/dev/null", join(units, name));
  }
  const unused = ["usr/share/doc", "usr/share/man", "usr/share/locale", "var/cache/apt", "var/lib/apt/lists"];
  for (const path of unused) rmSync(join(system, path), { recursive: true, force: true });
  for (const name of readdirSync(join(system, "boot"))) rmSync(join(system, "boot", name), { force: true });
}

/** A partition table of the old kind with two entries. */
function writePartitions(disk) {
  const sector = Buffer.alloc(512);
  for (const [index, { start, size }] of [PAYLOAD, SYSTEM].entries()) {
    const at = 446 + 16 * index;
    sector[at + 4] = 0x83;
    sector.writeUInt32LE(start / 512, at + 8);
    sector.writeUInt32LE(size / 512, at + 12);
  }
  sector.writeUInt16LE(0xaa55, 510);
  const file = openSync(disk, "r+");
  writeSync(file, sector, 0, 512, 0);
  closeSync(file);
}

/** Boots the machine on a copy of its disk, with an archive of `payload`, and returns what it printed. */
export async function bootMachine({ disk, kernel }, { place, payload, limit }) {
  const copy = join(place, "disk");
  await must("cp", ["--sparse=always", "--reflink=auto", disk, copy]);
  const archive = join(place, "payload.tar");
  await must("tar", ["-C", payload, "--owner=0", "--group=0", "-cf", archive, "."]);
  const bytes = readFileSync(archive);
  if (bytes.length > PAYLOAD.size) throw new Error(`the payload has ${bytes.length} bytes, more than its partition`);
  const file = openSync(copy, "r+");
  writeSync(file, bytes, 0, bytes.length, PAYLOAD.start);
  closeSync(file);
  const options =
    "root=/dev/nvme0n1p2 rootfstype=ext4 rw console=ttyS0 panic=-1 loglevel=3 mitigations=off systemd.show_status=0";
  // QEMU 7.2 emulates cmpxchg16b with wrong flags, and the kernel uses it where there is one. Several processors fail in the same way.
  const hardware = [
    "-M",
    "q35,hpet=off,smbus=off,sata=off,usb=off,accel=tcg",
    "-cpu",
    "qemu64,-cx16",
    "-smp",
    "1",
    "-m",
    "2048",
  ];
  const drive = [
    "-drive",
    `if=none,id=disk,file=${copy},format=raw,cache=unsafe`,
    "-device",
    "nvme,drive=disk,serial=glovebox",
  ];
  const rest = ["-nodefaults", "-no-user-config", "-no-reboot", "-display", "none", "-serial", "stdio"];
  const args = [...hardware, ...rest, ...drive, "-kernel", kernel, "-append", options];
  const child = spawn("setpriv", ["--pdeathsig", "KILL", "qemu-system-x86_64", ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const late = setTimeout(() => child.kill("SIGKILL"), limit);
  let printed = "";
  child.stdout.setEncoding("utf8").on("data", (text) => {
    printed += text;
  });
  await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  clearTimeout(late);
  return printed.replaceAll("\r", "").split("\n");
}

async function must(program, args) {
  expectSuccess(await run(program, args, { quiet: true }), program);
}
