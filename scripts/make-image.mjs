import { execFileSync, spawn } from "node:child_process";
import { chmodSync, cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** A download without output for this long has failed. */
const SILENCE = 5 * 60_000;

/** The phases of debootstrap, by the first word of its lines. */
const PHASES = {
  Retrieving: "retrieving packages",
  Extracting: "extracting packages",
  Unpacking: "unpacking packages",
  Configuring: "configuring packages",
};

/** BusyBox: one static program under all its names, without libc or packages. */
export function makeBusybox(root) {
  for (const name of ["bin", "etc", "root", "home/user", "tmp", "usr/bin", "dev"])
    mkdirSync(join(root, name), { recursive: true });
  chmodSync(join(root, "tmp"), 0o1777);
  cpSync(
    execFileSync("sh", ["-c", "readlink -f $(command -v busybox)"]).toString().trim(),
    join(root, "bin", "busybox"),
  );
  for (const name of execFileSync("busybox", ["--list"]).toString().trim().split("\n")) {
    if (name !== "busybox") symlinkSync("busybox", join(root, "bin", name));
  }
  writeFileSync(
    join(root, "etc", "passwd"),
    "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\nother:x:1001:1001::/home/user:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n",
  );
  writeFileSync(join(root, "etc", "group"), "root:x:0:\nuser:x:1000:\nother:x:1001:\nteam:x:2000:user,other\n");
  execFileSync("chown", ["-R", "1000:1000", join(root, "home", "user")]);
}

/** Debian with bash, python3, git and bubblewrap. Everything that debootstrap starts and mounts ends with this process. */
export async function makeDebian(root, { onPhase, signal }) {
  const source = readFileSync("/etc/os-release", "utf8");
  const suite = /^VERSION_CODENAME=(\w+)$/m.exec(source)?.[1] ?? "stable";
  const alone = ["unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child=SIGKILL"];
  const command = ["debootstrap", "--variant=minbase", "--include=bash,python3-minimal,git,bubblewrap", suite, root];
  const child = spawn("setpriv", ["--pdeathsig", "KILL", ...alone, ...command], {
    stdio: ["ignore", "pipe", "pipe"],
    signal,
    killSignal: "SIGKILL",
  });
  const last = [];
  let phase;
  const silence = setTimeout(() => child.kill("SIGKILL"), SILENCE);
  const onLine = (line) => {
    silence.refresh();
    last.push(line);
    if (last.length > 5) last.shift();
    const next = PHASES[/^I: (\w+)/.exec(line)?.[1]] ?? phase;
    if (next !== phase) onPhase(next);
    phase = next;
  };
  for (const stream of [child.stdout, child.stderr]) createInterface({ input: stream }).on("line", onLine);
  const [code, how] = await new Promise((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (...end) => resolve(end));
  }).finally(() => clearTimeout(silence));
  if (code !== 0) throw new Error(`debootstrap ended with ${how ?? code}: ${last.join("; ") || "no output"}`);
  for (const path of ["var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"]) {
    rmSync(join(root, path), { recursive: true, force: true });
  }
}
