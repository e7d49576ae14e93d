import { existsSync, readdirSync, readFileSync } from "node:fs";
import { openSandbox, registerBackend } from "glovebox";
import { type ConformanceHarness, formatReport, runConformance } from "glovebox/testing";
import { PLACE } from "./own-backend/folder.js";

// #region register
registerBackend("folder", () => import("./own-backend/folder.js"));
// #endregion register

/** Descriptors that whoever started this program left open for it and for all that it starts. */
const inherited = readdirSync("/proc/self/fd").filter((fd) => {
  if (Number(fd) <= 2 || !existsSync(`/proc/self/fdinfo/${fd}`)) return false;
  const flags = /^flags:\s*(\d+)$/m.exec(readFileSync(`/proc/self/fdinfo/${fd}`, "utf8"))?.[1] ?? "0";
  return (Number.parseInt(flags, 8) & 0o2000000) === 0;
});

// #region kit
const harness: ConformanceHarness = {
  backend: "folder",
  open: (opts) => openSandbox({ backend: "folder", isolation: "none", ...opts }),
  skips: {
    "exec.exit.no-format": "Node starts programs by execvp, which hands a file in no known format to a shell",
    ...(inherited.length > 0 && { "exec.fds": `Node hands on the descriptors that it inherited: ${inherited}` }),
  },
  census: async () => (existsSync(PLACE) ? readdirSync(PLACE) : []),
  host: { directoryOf: ({ workDir }) => workDir, sharesNetwork: true },
};
const report = await runConformance(harness, { concurrency: 4 });
console.log(formatReport(report));
if (report.failed > 0) process.exitCode = 1;
// #endregion kit
