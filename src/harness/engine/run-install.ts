import { isoTime } from "../../util/iso-time.js";
import type { InstallStep } from "../install.js";
import { setupNode } from "../nodes.js";
import type { NodeReport } from "../types.js";
import type { EngineState } from "./engine-state.js";
import { runNode } from "./run-node.js";

/**
 * Runs an installation, with the hosts that only it may reach. They are closed when this returns, whatever happened: no node after it gets them. One
 * that was found from a lockfile is skipped where its program is missing.
 */
export async function runInstall(state: EngineState, step: InstallStep): Promise<NodeReport> {
  if (step.lockfile !== undefined && !(await isPresent(state, step.run[0] ?? ""))) return await skip(state, step);
  if (step.reach.length === 0) return explained(step, await runNode(state, nodeOf(step, {})));
  const window = await state.sandbox.openNetwork(step.reach);
  let report: NodeReport;
  try {
    report = await runNode(state, nodeOf(step, window.env));
  } finally {
    await window.close();
  }
  return explained(step, report);
}

/** Values are given as they are: none of them is a template. */
function nodeOf(
  { id, run, env, lockfile }: InstallStep,
  more: Readonly<Record<string, string>>,
): ReturnType<typeof setupNode> {
  const proxy = more["HTTP_PROXY"];
  // Yarn 2 and later does not read the usual names.
  const forYarn = proxy === undefined ? {} : { YARN_HTTP_PROXY: proxy, YARN_HTTPS_PROXY: proxy };
  const all = Object.entries({ ...env, ...more, ...forYarn }).map(([name, value]) => [name, () => value]);
  return setupNode(id, lockfile === undefined ? run : run.map((text) => () => text), Object.fromEntries(all));
}

async function isPresent({ sandbox, signal }: EngineState, program: string): Promise<boolean> {
  const argv = ["/bin/sh", "-c", 'command -v -- "$1" >/dev/null', "sh", program];
  return (await sandbox.exec({ argv, timeout: 60_000, signal })).exitCode === 0;
}

async function skip(state: EngineState, step: InstallStep): Promise<NodeReport> {
  const { id, run, lockfile } = step;
  const { kind } = nodeOf(step, {});
  const reason = `there is no ${run[0] ?? ""} in the sandbox to install what ${lockfile ?? ""} names`;
  await state.warn(`${id} is skipped: ${reason}`);
  await state.emit({ type: "node.skipped", nodeId: id, name: id, kind, reason });
  const startedAt = isoTime();
  const nothing = { output: "", outputTruncated: false, durationMs: 0, attempt: 1 };
  return { id, name: id, kind, status: "skipped", reason, startedAt, ...nothing };
}

/** A failed installation says what it could reach, and what to do. */
function explained({ reach, hasSecret, fills }: InstallStep, report: NodeReport): NodeReport {
  if (report.status !== "failure" || report.error === undefined) return report;
  const hosts = reach.map((entry) => entry.replace(/^plain:\/\//, "").replace(/:443$/, "")).join(", ");
  const hint = [
    ...(hosts === "" ? [] : [`it could reach ${hosts}; --network allow=<host> adds another host`]),
    ...(hasSecret ? ["your token for the registry is not given to the sandbox"] : []),
    ...(fills === undefined ? [] : [`--copy ${fills} copies yours in`]),
    "--no-install leaves this step out",
  ].join(". ");
  return { ...report, error: { ...report.error, hint } };
}
