import { createHash } from "node:crypto";
import {
  chownSync,
  copyFileSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { endAllOnInterrupt, run } from "./processes.mjs";
import { expectSuccess } from "./step.mjs";

/**
 * Feeds the guest broken requests or archives, under sanitizers, in a jail without a network or privileges.
 * The same seed and number of cases repeat a run. Exits with 0 if nothing broke. With `--build` it only compiles.
 */
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values: options } = parseArgs({
  options: {
    mode: { type: "string", default: "requests" },
    seed: { type: "string", default: "1" },
    cases: { type: "string", default: "1000000" },
    seconds: { type: "string", default: "60" },
    sources: { type: "string", default: join(root, "guest") },
    build: { type: "boolean", default: false },
  },
});

const cache = join(root, "node_modules", ".cache", "glovebox", "fuzz");
const flags = [
  ..."-std=gnu11 -D_GNU_SOURCE -O0 -g1 -Wall -Wextra -Werror -Wshadow".split(" "),
  ..."-fsanitize=address,undefined -fno-sanitize-recover=all".split(" "),
];
const compiler = process.env.FUZZ_CC ?? "gcc";
const NOBODY = 65534;
const scratch = mkdtempSync(join(tmpdir(), "glovebox-fuzz-"));
endAllOnInterrupt(clean);

try {
  const program = join(scratch, "fuzz");
  await link(program);
  process.exitCode = options.build ? 0 : await runJailed(program);
} catch (error) {
  console.error(error.message);
  process.exitCode = 2;
} finally {
  clean();
}

async function link(program) {
  const files = readdirSync(options.sources, { recursive: true }).filter((name) => name !== "main.c");
  const ending = (end) => files.filter((name) => name.endsWith(end)).map((name) => join(options.sources, name));
  const [headers, waiting] = [ending(".h"), ending(".c")];
  mkdirSync(cache, { recursive: true });
  const objects = [];
  const work = async () => {
    for (let unit = waiting.shift(); unit; unit = waiting.shift()) objects.push(await compile(unit, headers));
  };
  await Promise.all([work(), work()]);
  expectSuccess(await run(compiler, [...flags, "-o", program, ...objects.sort()], { quiet: true }), compiler);
}

/** One object file, cached until its source or a header changes. */
async function compile(unit, headers) {
  const hash = createHash("sha256").update(flags.join(" "));
  for (const file of [...headers, unit]) hash.update(`${basename(file)}\0`).update(readFileSync(file));
  const object = join(cache, `${basename(unit, ".c")}-${hash.digest("hex").slice(0, 20)}.o`);
  if (existsSync(object)) return object;
  const made = join(scratch, `${hashName(unit)}.o`);
  expectSuccess(await run(compiler, [...flags, "-c", "-o", made, unit], { quiet: true }), `${compiler} ${unit}`);
  copyFileSync(made, `${object}.${process.pid}`);
  renameSync(`${object}.${process.pid}`, object);
  return object;
}

function hashName(text) {
  return createHash("sha256").update(text).digest("hex").slice(0, 20);
}

async function runJailed(program) {
  const place = join(scratch, "place");
  mkdirSync(join(place, "world"), { recursive: true });
  const isRoot = process.getuid?.() === 0;
  if (isRoot) for (const path of [scratch, place, join(place, "world")]) chownSync(path, NOBODY, NOBODY);
  // Ignore signals that requests send, which would look like crashes; the exit status shows real ones.
  const sanitizer = [
    "exitcode=86:detect_leaks=0:allocator_may_return_null=1:print_stacktrace=1:log_path=/place/sanitizer",
    "handle_segv=0:handle_sigbus=0:handle_sigill=0:handle_sigfpe=0:handle_abort=0",
  ].join(":");
  const system = ["bin", "lib", "lib64"].flatMap((name) => {
    if (!existsSync(`/${name}`)) return [];
    return lstatSync(`/${name}`).isSymbolicLink()
      ? ["--symlink", readlinkSync(`/${name}`), `/${name}`]
      : ["--ro-bind", `/${name}`, `/${name}`];
  });
  const jail = [
    ..."--unshare-all --die-with-parent --new-session --cap-drop ALL --ro-bind /usr /usr --proc /proc --dev /dev".split(
      " ",
    ),
    ...[...system, "--bind", place, "/place", "--ro-bind", program, "/fuzz"],
    ...["--", "/fuzz", options.mode, options.seed, options.cases, options.seconds, "/place/world"],
  ];
  const env = { PATH: "/usr/bin:/bin", ASAN_OPTIONS: sanitizer, UBSAN_OPTIONS: sanitizer };
  const as = isRoot ? { uid: NOBODY, gid: NOBODY } : {};
  const { code } = await run("bwrap", jail, { cwd: "/", env, ...as });
  const reports = readdirSync(place).filter((name) => name.startsWith("sanitizer"));
  for (const name of reports.slice(0, 3)) console.error(readFileSync(join(place, name), "utf8").slice(0, 6000));
  return code !== 0 ? code : reports.length > 0 ? 1 : 0;
}

function clean() {
  rmSync(scratch, { recursive: true, force: true });
}
