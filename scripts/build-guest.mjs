import { createHash } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { run } from "./processes.mjs";
import { expectSuccess, StepFailed, step } from "./step.mjs";
import { hasCommand, installLine } from "./system-parts.mjs";

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const sources = join(root, "guest");
const stamps = join(root, "node_modules", ".cache", "glovebox");

/** Cross compilers, by the architecture they compile for. */
const crossCompilers = { x64: "x86_64-linux-gnu-gcc", arm64: "aarch64-linux-gnu-gcc" };

const flags = [
  ..."-std=gnu11 -D_GNU_SOURCE -O2 -Wall -Wextra -Werror -Wshadow -fstack-protector-strong".split(" "),
  ..."-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -static -s -Wl,-z,noexecstack".split(" "),
];

/**
 * Compiles the guest, PID 1 of a sandbox, unless it is up to date: for this machine, and for other architectures whose
 * cross compiler is installed.
 */
export async function buildGuest() {
  if (process.platform !== "linux") return "not built: it runs on Linux only";
  const own = buildFor(process.arch, findCompiler());
  const others = Object.entries(crossCompilers).filter(([arch]) => arch !== process.arch);
  return (await Promise.all([own, ...others.map(([arch, compiler]) => buildOther(arch, compiler))])).join("; ");
}

async function buildOther(arch, compiler) {
  if (hasCommand(compiler)) return await buildFor(arch, compiler);
  // Never ship an old guest next to a new one.
  rmSync(join(sources, "bin", `linux-${arch}`), { recursive: true, force: true });
  return `linux-${arch} not built: ${compiler} is not installed`;
}

/** Compiles the guest with this compiler into a folder that is empty, and returns the program's path. */
export async function compileGuest(compiler, folder) {
  const units = sourceFiles().filter((name) => name.endsWith(".c"));
  if (units.length === 0) throw new StepFailed("there is no C source in guest/");
  const headers = /musl/.test(compiler) ? ["-idirafter", kernelHeaders(folder)] : [];
  const output = join(folder, "glovebox-guest");
  const args = [...flags, ...headers, "-o", output, ...units.map((name) => join(sources, name))];
  expectSuccess(await run(compiler, args, { quiet: true }), compiler);
  return output;
}

function sourceFiles() {
  return readdirSync(sources, { recursive: true })
    .filter((name) => /\.[ch]$/.test(name) && !name.startsWith("fuzz"))
    .sort();
}

async function buildFor(arch, compiler) {
  const target = join(sources, "bin", `linux-${arch}`, "glovebox-guest");
  const stamp = join(stamps, `guest-linux-${arch}`);
  const hash = hashOf([compiler, arch, ...flags], sourceFiles());
  if (existsSync(target) && existsSync(stamp) && readFileSync(stamp, "utf8") === hash)
    return `linux-${arch} up to date`;

  const scratch = mkdtempSync(join(tmpdir(), "glovebox-guest-"));
  try {
    const output = await compileGuest(compiler, scratch);
    mkdirSync(dirname(target), { recursive: true });
    // The file of a running guest can't be overwritten, so rename the new one into its place.
    writeFileSync(`${target}.new`, readFileSync(output), { mode: 0o755 });
    renameSync(`${target}.new`, target);
  } finally {
    rmSync(scratch, { recursive: true, force: true });
  }
  mkdirSync(dirname(stamp), { recursive: true });
  writeFileSync(stamp, hash);
  return `linux-${arch} ${Math.ceil(statSync(target).size / 1024)} KiB by ${compiler}`;
}

function findCompiler() {
  const asked = process.env.CC;
  if (asked && !hasCommand(asked)) throw new StepFailed(`the compiler in CC does not exist: ${asked}`);
  const compiler = asked || ["musl-gcc", "gcc", "cc"].find((name) => hasCommand(name));
  if (compiler) return compiler;
  throw new StepFailed(`no C compiler found. Run:\n${installLine(["gcc", "libc6-dev", "musl-tools"])}`);
}

/** musl-gcc only sees musl's headers; links give it the kernel's headers without glibc's. */
function kernelHeaders(scratch) {
  const folder = join(scratch, "include");
  mkdirSync(folder);
  const triplet = { x64: "x86_64-linux-gnu", arm64: "aarch64-linux-gnu" }[process.arch] ?? "";
  for (const name of ["linux", "asm-generic", "asm"]) {
    const place = [join("/usr/include", name), join("/usr/include", triplet, name)].find((path) => existsSync(path));
    if (place) symlinkSync(place, join(folder, name));
  }
  return folder;
}

function hashOf(words, files) {
  const hash = createHash("sha256");
  for (const word of words) hash.update(`${word}\0`);
  for (const name of files) hash.update(`${name}\0`).update(readFileSync(join(sources, name)));
  return hash.digest("hex");
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  await step("guest", buildGuest).catch(() => process.exit(1));
}
