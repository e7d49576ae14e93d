import { findVersion, versionFault } from "../agents.js";
import type { AgentNeed } from "../needs.js";
import { KINDS, kindOf } from "../nodes.js";
import type { AgentDriver, BlueprintNode } from "../types.js";
import type { EngineState } from "./engine-state.js";
import { missingAgent } from "./missing-agent.js";

const VERSION_TIMEOUT = 60_000;

/** Checks before the first node that the sandbox has what the nodes rely on: agents, and what their kinds need. */
export async function preflight(
  state: EngineState,
  nodes: readonly BlueprintNode[],
  agents: readonly AgentNeed[],
): Promise<void> {
  const seen = new Set<string>();
  for (const { nodeId, driver, task } of agents.filter((need) => nodes.some(({ id }) => id === need.nodeId))) {
    const [program] = task.command ?? [];
    // A driver that can't print its version runs the program that the blueprint names.
    const key = driver.versionArgv === undefined ? `command ${program}` : driver.name;
    if (seen.has(key)) continue;
    seen.add(key);
    if (driver.versionArgv !== undefined) await checkVersion(state, driver, driver.versionArgv);
    else if (program !== undefined) await checkPresence(state, driver, program, nodeId);
  }
  for (const kind of KINDS)
    await kind.preflight?.(
      nodes.filter((node) => kindOf(node) === kind),
      state,
    );
}

async function checkVersion(state: EngineState, driver: AgentDriver, argv: readonly string[]): Promise<void> {
  const { sandbox, signal } = state;
  const result = await sandbox.exec({ argv, timeout: VERSION_TIMEOUT, maxOutput: 4_000, signal });
  if (result.exitCode === 127) throw missingAgent(driver);
  const said = state.hide(`${result.stdout}\n${result.stderr}`.trim(), 500);
  if (result.exitCode !== 0 || result.timedOut) {
    throw missingAgent(
      driver,
      `The agent ${driver.name} does not start in the sandbox: ${said || `exit ${result.exitCode}`}`,
    );
  }
  const version = findVersion(result.stdout) ?? findVersion(result.stderr);
  if (version === undefined) return await state.warn(`${driver.name} does not print its version: ${said}`);
  const fault = versionFault(driver, version);
  if (fault?.isTooOld === true) throw missingAgent(driver, fault.message);
  if (fault !== undefined) await state.warn(fault.message);
  state.versions.set(driver.name, version);
  await state.emit({ type: "agent.version", agent: driver.name, version });
}

async function checkPresence(
  { sandbox, signal }: EngineState,
  driver: AgentDriver,
  program: string,
  nodeId: string,
): Promise<void> {
  const argv = ["/bin/sh", "-c", 'command -v -- "$1" >/dev/null', "sh", program];
  const { exitCode } = await sandbox.exec({ argv, timeout: VERSION_TIMEOUT, signal });
  if (exitCode === 0) return;
  throw missingAgent(driver, `The agent of node ${nodeId} is not in the sandbox: there is no program ${program}`);
}
