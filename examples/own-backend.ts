import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { openSandbox, reap, registerBackend, removeSandbox } from "glovebox";
import { type ConformanceHarness, formatReport, runConformance } from "glovebox/testing";
import { DEFAULT_PARENT } from "./own-backend/folder.js";

// #region register
registerBackend("folder", async () => (await import("./own-backend/folder.js")).backend);
// #endregion register

const open = { backend: "folder", isolation: "none" } as const;
const folders = (): string[] => (existsSync(DEFAULT_PARENT) ? readdirSync(DEFAULT_PARENT) : []);

if (process.argv[2] === "hold") {
  const sandbox = await openSandbox({ ...open });
  console.log(sandbox.id);
  await delay(600_000);
}

// #region crash
/** A process dies without a chance to clean up; the next one removes what it left. */
async function surviveCrash(): Promise<void> {
  const child = spawn(process.execPath, [fileURLToPath(import.meta.url), "hold"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const [id] = (await once(createInterface(child.stdout), "line")) as [string];
  child.kill("SIGKILL");
  await once(child, "close");
  if (!folders().includes(id)) throw new Error("the folder should be there until somebody reaps it");
  const { removed } = await reap({ backend: "folder" });
  if (!removed.includes(id) || folders().includes(id)) throw new Error(`${id} was not reaped`);
}

/** What is kept stays, and an id is enough to open it again. */
async function keepAndReopen(): Promise<void> {
  const first = await openSandbox({ ...open, keep: true });
  await first.writeFile("note.txt", "kept");
  await first.teardown();
  {
    await using again = await openSandbox({ id: first.id });
    if ((await again.readFile("note.txt")) !== "kept") throw new Error("the file should be there");
  }
  await removeSandbox(first.id);
}
// #endregion crash

await surviveCrash();
await keepAndReopen();

// #region kit
const harness: ConformanceHarness = {
  backend: "folder",
  open: (opts) => openSandbox({ ...open, ...opts }),
  remove: (id) => removeSandbox(id),
  census: async () => folders(),
  host: { directoryOf: ({ hostDir }) => hostDir, sharesNetwork: true },
};
const report = await runConformance(harness, { concurrency: 4 });
console.log(formatReport(report));
if (report.failed > 0) process.exitCode = 1;
// #endregion kit
