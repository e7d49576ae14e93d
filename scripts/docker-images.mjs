import { execFileSync, spawn } from "node:child_process";
import {
  chmodSync,
  cpSync,
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { request } from "node:http";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { hasCommand } from "./system-parts.mjs";

/** Images for tests and measurements, made of what Debian's packages hold and kept between runs. No registry is asked. */
const IMAGES = {
  "glovebox-test/busybox:1": { file: "busybox-3.tar", make: makeBusybox, needs: ["busybox"] },
  "glovebox-test/debian:1": { file: "debian-1.tar", make: makeDebian, needs: ["debootstrap"] },
};

export const BUSYBOX = "glovebox-test/busybox:1";
export const DEBIAN = "glovebox-test/debian:1";

/** Why an image cannot be had here; undefined when it can. */
export function whyNoImage(name) {
  const { file, needs } = IMAGES[name];
  if (existsSync(join(cacheFolder(), file))) return undefined;
  const missing = needs.filter((command) => !hasCommand(command));
  return missing.length > 0 ? `not installed: ${missing.join(", ")}` : undefined;
}

/** Brings an image to an engine, unless it has it. */
export async function ensureImage(host, name) {
  const socketPath = host.slice("unix://".length);
  if ((await call(socketPath, "GET", `/images/${name}/json`)).status === 200) return;
  const { file, make } = IMAGES[name];
  const archive = join(cacheFolder(), file);
  if (!existsSync(archive)) await keepArchive(archive, make);
  const [repo, tag] = name.split(":");
  const path = `/images/create?fromSrc=-&repo=${encodeURIComponent(repo)}&tag=${tag}`;
  const { status, text } = await call(socketPath, "POST", path, createReadStream(archive), statSync(archive).size);
  if (status !== 200 || text.includes('"error"')) throw new Error(`${name} could not be imported: ${text.slice(-500)}`);
}

function cacheFolder() {
  const folder = join(process.env.XDG_CACHE_HOME || join(homedir(), ".cache"), "glovebox", "test-images");
  mkdirSync(folder, { recursive: true });
  return folder;
}

/** Whole or not at all: another run may look for it at the same time. */
async function keepArchive(archive, make) {
  const scratch = mkdtempSync(join(tmpdir(), "glovebox-image-"));
  try {
    const root = join(scratch, "root");
    mkdirSync(root);
    await make(root);
    const packed = `${archive}.${process.pid}`;
    execFileSync("tar", ["-C", root, "--numeric-owner", "--exclude=./dev/*", "-cf", packed, "."]);
    renameSync(packed, archive);
  } finally {
    rmSync(scratch, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** One static program under all its names: no libc, no package, hardly a file. */
function makeBusybox(root) {
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

/** Debian with bash, python3 and git. */
async function makeDebian(root) {
  const source = readFileSync("/etc/os-release", "utf8");
  const suite = /^VERSION_CODENAME=(\w+)$/m.exec(source)?.[1] ?? "stable";
  const options = ["--variant=minbase", "--include=bash,python3-minimal,git", suite, root];
  const child = spawn("debootstrap", options, { stdio: "ignore" });
  const code = await new Promise((resolve) => child.once("close", resolve));
  if (code !== 0) throw new Error(`debootstrap ended with ${code}`);
  for (const path of ["var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/man", "usr/share/locale"]) {
    rmSync(join(root, path), { recursive: true, force: true });
  }
}

function call(socketPath, method, path, body, length) {
  return new Promise((resolve, reject) => {
    const headers = body ? { "Content-Type": "application/x-tar", "Content-Length": length } : {};
    const sent = request({ socketPath, method, path, headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (piece) => {
        text = (text + piece).slice(-10_000);
      });
      answer.on("end", () => resolve({ status: answer.statusCode, text }));
      answer.on("error", reject);
    });
    sent.on("error", reject);
    if (body) body.pipe(sent);
    else sent.end();
  });
}
