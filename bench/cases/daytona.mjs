import { execFileSync } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createDaytonaSandbox } from "../../dist/src/sandbox/daytona.js";
import { goal, interleave, row, timed } from "../parts/measure.mjs";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const TOKEN = "ghp_0123456789abcdefghij";
/** The calls that the specification names for a sandbox with a repository: create, clone, make the branch, check it out. */
const CALLS_OF_THE_SPECIFICATION = 4;
const FILES = Array.from({ length: 50 }, (_, i) => ({ path: `many/${i}`, content: `file ${i}\n` }));

/** Requests and time of each operation on a local stand-in for the service, against the simplest correct SDK calls. */
export async function measure({ scratch, isQuick }) {
  process.env.GLOVEBOX_HOME = join(scratch, "home");
  const compiled = compileService(scratch);
  const { startFakeDaytona } = await import(pathToFileURL(join(compiled, "fakes", "daytona", "server.js")).href);
  const { serveGit } = await import(pathToFileURL(join(compiled, "support", "git", "server.js")).href);
  const { Daytona } = await import("@daytona/sdk");
  const service = await startFakeDaytona();
  const github = await serveGit(makeRemote(scratch), TOKEN);
  process.env.GITHUB_SERVER_URL = github.origin;
  const { apiUrl, apiKey } = service;
  const client = new Daytona({ apiUrl, apiKey, target: "us", useDeprecatedPolling: true });
  const plain = await client.create({ snapshot: "daytona-medium" });
  const sandbox = await createDaytonaSandbox({ daytona: { apiUrl, apiKey } });
  try {
    const variants = {
      "glovebox, exec": () => sandbox.exec({ argv: ["echo", "hello"] }),
      "SDK session, exec": () => plainExec(plain, "echo hello"),
      "SDK executeCommand": () => plain.process.executeCommand("echo hello", undefined, undefined, 10),
      "glovebox, 50 files": () => sandbox.uploadFiles(FILES),
      "SDK, 50 files": () => plainUpload(plain),
      "glovebox, read": () => sandbox.readFile("many/1"),
      "SDK, read": () => plain.fs.downloadFile("many/1"),
    };
    const whole = {
      "glovebox, repository": () => openRepository({ apiUrl, apiKey }, service),
      "SDK, repository": () => plainRepository(client, github.origin, service),
    };
    const samples = await interleave(variants, { rounds: isQuick ? 10 : 100, warmup: 2 });
    const opened = {};
    const openings = await interleave(
      Object.fromEntries(
        Object.entries(whole).map(([name, run]) => [
          name,
          async () => {
            opened[name] = await run();
            return opened[name].ms;
          },
        ]),
      ),
      { rounds: isQuick ? 3 : 20 },
    );
    const rows = Object.entries({ ...samples, ...openings }).map(([variant, taken]) => row(variant, taken));
    const [exec, , direct] = rows;
    const requests = {};
    for (const [name, run] of Object.entries(variants)) {
      const before = service.requests.length;
      await run();
      requests[name] = service.requests.length - before;
    }
    const [ours, theirs] = Object.entries(opened).map(([name, { calls }]) =>
      row(`${name}, requests`, [calls.length], "requests"),
    );
    // The other requests upload the guest, which makes every later exec a single request.
    const made = opened["glovebox, repository"].calls.filter((line) => /sandbox$|home-dir|\/git\//.test(line));
    const own = row("glovebox, repository, without the guest", [made.length], "requests");
    const counted = (name) => row(`${name}, requests`, [requests[name]], "requests");
    const counts = Object.keys(variants).map(counted);
    const added = Math.max(0, exec.p50 - direct.p50);
    return {
      rows: [...rows, ...counts, ours, own, theirs],
      goals: [
        goal("Daytona exec over the service's own answer", {
          value: added,
          unit: "ms",
          atMost: 20,
          ours: exec,
          other: direct,
        }),
        goal("requests of a Daytona exec", {
          value: requests["glovebox, exec"],
          unit: "requests",
          atMost: 1,
          ours: counts[0],
          other: counts[1],
        }),
        goal("requests to create, clone and branch", {
          value: own.p50,
          unit: "requests",
          atMost: CALLS_OF_THE_SPECIFICATION,
          ours: own,
          other: theirs,
        }),
        goal("requests of 50 files to Daytona", {
          value: requests["glovebox, 50 files"],
          unit: "requests",
          atMost: 2,
          ours: counts[3],
          other: counts[4],
        }),
        goal("requests of a Daytona read", {
          value: requests["glovebox, read"],
          unit: "requests",
          atMost: 1,
          ours: counts[5],
          other: counts[6],
        }),
      ],
    };
  } finally {
    await sandbox.teardown();
    await plain.delete(60, true);
    await client[Symbol.asyncDispose]();
    await service.close();
    await github.close();
  }
}

/** What a careful user of the SDK writes: both streams, the exit code, and no leftovers. */
async function plainExec({ process }, command) {
  const session = `plain-${Math.random().toString(16).slice(2)}`;
  await process.createSession(session);
  try {
    const { cmdId } = await process.executeSessionCommand(session, {
      command: `bash -c '${command}' </dev/null`,
      runAsync: true,
    });
    await process.getSessionCommandLogs(
      session,
      cmdId,
      () => undefined,
      () => undefined,
    );
    const { exitCode } = await process.getSessionCommand(session, cmdId);
    if (exitCode !== 0) throw new Error(`it ended with ${exitCode}`);
  } finally {
    await process.deleteSession(session);
  }
}

async function plainUpload({ fs }) {
  await fs.createFolder("many", "755");
  await fs.uploadFiles(FILES.map(({ path, content }) => ({ source: Buffer.from(content), destination: path })));
}

/** Measured until it can run commands; teardown is not measured. */
async function openRepository(daytona, service) {
  const before = service.requests.length;
  let sandbox;
  const ms = await timed(async () => {
    sandbox = await createDaytonaSandbox({ daytona, repo: "acme/widgets", branch: "run-1", githubToken: TOKEN });
  });
  const calls = service.requests.slice(before);
  await sandbox.teardown();
  return { ms, calls };
}

/** The same with the simplest calls: no cleanup if one fails, and no command can run yet. */
async function plainRepository(client, origin, service) {
  const before = service.requests.length;
  let sandbox;
  const ms = await timed(async () => {
    sandbox = await client.create({ snapshot: "daytona-medium", autoStopInterval: 30, autoDeleteInterval: 0 });
    const path = "workspace/widgets";
    await sandbox.git.clone(`${origin}/acme/widgets.git`, path, undefined, undefined, "git", TOKEN);
    await sandbox.git.createBranch(path, "run-1");
    await sandbox.git.checkoutBranch(path, "run-1");
  });
  const calls = service.requests.slice(before);
  await sandbox.delete(60, true);
  return { ms, calls };
}

/** Makes a small repository, `acme/widgets`, and returns the folder to serve. */
function makeRemote(scratch) {
  const remotes = join(scratch, "remotes");
  const work = join(scratch, "work");
  const git = (...args) => execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b.invalid", ...args]);
  git("init", "--quiet", "--initial-branch", "main", work);
  for (let i = 0; i < 50; i++) writeFileSync(join(work, `file-${i}`), `${i}\n`);
  git("-C", work, "add", ".");
  git("-C", work, "commit", "--quiet", "-m", "first");
  git("clone", "--quiet", "--bare", work, join(remotes, "acme", "widgets.git"));
  return remotes;
}

/** Compiles the tests' stand-in for the service, which is TypeScript. */
function compileService(scratch) {
  const out = join(scratch, "service");
  const compiler = join(root, "node_modules", "typescript", "bin", "tsc");
  const options = [
    "--ignoreConfig",
    "--noCheck",
    "--target",
    "es2022",
    "--module",
    "nodenext",
    "--rootDir",
    join(root, "tests"),
    "--outDir",
    out,
  ];
  const sources = ["fakes/daytona/server.ts", "support/git/server.ts"].map((file) => join(root, "tests", file));
  execFileSync(process.execPath, [compiler, ...options, ...sources], { cwd: root });
  writeFileSync(join(out, "package.json"), '{"type":"module"}');
  symlinkSync(join(root, "node_modules"), join(out, "node_modules"));
  return out;
}
