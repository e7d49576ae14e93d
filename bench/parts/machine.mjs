import { execFileSync } from "node:child_process";
import { statfsSync } from "node:fs";
import { cpus, loadavg, release, tmpdir, totalmem } from "node:os";

const FILE_SYSTEMS = {
  16914836: "tmpfs",
  61267: "ext4",
  2435016766: "btrfs",
  1481003842: "xfs",
  2035054128: "overlay",
};

/** The properties of the machine that the figures depend on, but nothing that identifies it. */
export function machineFacts() {
  return {
    cpu: cpus()[0]?.model.trim() ?? "unknown",
    cores: cpus().length,
    memoryGiB: Math.round(totalmem() / 2 ** 30),
    arch: process.arch,
    kernel: release(),
    node: process.version,
    git: versionOf("git"),
    bubblewrap: versionOf("bwrap"),
    files: FILE_SYSTEMS[statfsSync(tmpdir()).type] ?? "unknown",
    root: process.getuid?.() === 0,
  };
}

/** The load of the machine over the last minute. */
export function loadAverage() {
  return Number((loadavg()[0] ?? 0).toFixed(2));
}

function versionOf(program) {
  try {
    return /\d+(\.\d+)+/.exec(execFileSync(program, ["--version"], { encoding: "utf8" }))?.[0] ?? "unknown";
  } catch {
    return "not there";
  }
}
