import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, readlinkSync, symlinkSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { SandboxInfo, SnapshotInfo } from "../../src/sandbox.js";
import type { Scratch } from "./scratch.js";

const FIXTURE = fileURLToPath(new URL("../fixtures/home-0.1/home.json", import.meta.url));

/** What the version that made the home said of it. */
export interface OldHome {
  /** Ids of kept sandboxes, by what they work on. */
  readonly kept: Readonly<Record<string, string>>;
  /** Ids of the snapshots of those, and of one that is gone. */
  readonly saved: Readonly<Record<string, string>>;
  /** A kept sandbox whose process was killed while it had it open. */
  readonly crashed: string;
  /** The kept sandbox of a run that failed. */
  readonly failed: string;
  /** Ids of what its `reap` would have removed. */
  readonly leftovers: readonly string[];
  readonly sandboxes: readonly SandboxInfo[];
  readonly snapshots: readonly SnapshotInfo[];
}

interface Packed {
  expected: OldHome;
  digests: { name: string; text: string; length: number }[];
  entries: { path: string; kind: string; mode?: number; text?: string; base64?: string; target?: string }[];
}

/** This machine as version 0.1 names it in a record. */
export function placeOf01(): { BOOT: string; PIDNS: string; HOST: string } {
  return {
    BOOT: readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim(),
    PIDNS: readlinkSync("/proc/self/ns/pid"),
    HOST: (existsSync("/etc/machine-id") && readFileSync("/etc/machine-id", "utf8").trim()) || hostname(),
  };
}

/**
 * Unpacks the home that version 0.1 made, and all that lies beside it, into the scratch directory. Its processes were on
 * this machine and died since it was started, unless `place` says otherwise.
 */
export function unpackOldHome(scratch: Scratch, place: Partial<ReturnType<typeof placeOf01>> = {}): OldHome {
  const { expected, digests, entries } = JSON.parse(readFileSync(FIXTURE, "utf8")) as Packed;
  const moved = join(scratch.path, "package");
  const known = { ROOT: scratch.path, PACKAGE: moved, ...placeOf01(), ...place };
  const values = Object.entries(known).map(([name, value]): [string, string] => [`@${name}@`, value]);
  const fill = (text: string): string => values.reduce((left, [name, value]) => left.replaceAll(name, value), text);
  for (const { name, text, length } of digests) {
    values.push([name, createHash("sha256").update(fill(text)).digest("hex").slice(0, length)]);
  }
  for (const { path, kind, mode = 0o600, text, base64 = "", target = "" } of entries) {
    const at = join(scratch.path, fill(path));
    if (kind === "directory") mkdirSync(at, { recursive: true, mode });
    else if (kind === "link") symlinkSync(fill(target), at);
    // The kernel's mark in a layer for a file that is gone.
    else if (kind === "whiteout") execFileSync("mknod", [at, "c", "0", "0"]);
    else writeFileSync(at, text === undefined ? Buffer.from(base64, "base64") : fill(text), { mode });
  }
  return JSON.parse(fill(JSON.stringify(expected))) as OldHome;
}
