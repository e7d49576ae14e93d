import { execFileSync } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createDaytonaSandbox } from "../../dist/src/sandbox/daytona.js";
import { goal, interleave, row } from "../parts/measure.mjs";

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const FILES = Array.from({ length: 50 }, (_, i) => ({ path: `many/${i}`, content: `file ${i}\n` }));

/** Requests and time of each operation at a service on this machine, against the plainest correct calls of the SDK. */
export async function measure({ scratch, isQuick }) {
  process.env.GLOVEBOX_HOME = join(scratch, "home");
  const { startFakeDaytona } = await import(pathToFileURL(compileService(scratch)).href);
  const { Daytona } = await import("@daytona/sdk");
  const service = await startFakeDaytona();
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
    const samples = await interleave(variants, { rounds: isQuick ? 10 : 100, warmup: 2 });
    const rows = Object.entries(samples).map(([variant, taken]) => row(variant, taken));
    const [exec, , direct] = rows;
    const requests = {};
    for (const [name, run] of Object.entries(variants)) {
      const before = service.requests.length;
      await run();
      requests[name] = service.requests.length - before;
    }
    const counted = (name) => row(`${name}, requests`, [requests[name]], "requests");
    const counts = Object.keys(variants).map(counted);
    const added = Math.max(0, exec.p50 - direct.p50);
    return {
      rows: [...rows, ...counts],
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
  }
}

/** Both streams, the exit code and nothing left behind: what a careful user of the SDK writes. */
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

/** The service is written for the tests, in TypeScript. */
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
  execFileSync(process.execPath, [compiler, ...options, join(root, "tests", "fakes", "daytona-server.ts")], {
    cwd: root,
  });
  writeFileSync(join(out, "package.json"), '{"type":"module"}');
  symlinkSync(join(root, "node_modules"), join(out, "node_modules"));
  return join(out, "fakes", "daytona-server.js");
}
