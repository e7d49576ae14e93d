import { constants } from "node:fs";
import { access } from "node:fs/promises";
import { tmpdir } from "node:os";
import { gloveboxHome, isHomeTemporary } from "../../../machine/home.js";
import { type Finding, listSandboxes } from "../../../sandbox.js";
import { ownVersion } from "../../../util/own-version.js";

/** What every backend needs on this machine. */
export async function machineFindings(): Promise<Finding[]> {
  return [
    { name: "glovebox", status: "ok", detail: ownVersion() },
    nodeFinding(process.versions.node),
    await stateFinding(),
    await temporaryFinding(),
  ];
}

/** Whether this Node is new enough. */
export function nodeFinding(version: string): Finding {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const isEnough = major > 20 || (major === 20 && minor >= 19);
  if (isEnough) return { name: "node", status: "ok", detail: `${version}${standIn(process.versions)}` };
  return { name: "node", status: "missing", detail: `${version} is too old`, fix: "install Node 20.19 or later" };
}

/** The runtime that stands in for Node, if one does. */
function standIn({ bun, deno }: NodeJS.ProcessVersions): string {
  if (bun !== undefined) return `, by Bun ${bun}`;
  return deno === undefined ? "" : `, by Deno ${deno}`;
}

async function stateFinding(): Promise<Finding> {
  const name = "state";
  try {
    const sandboxes = await listSandboxes();
    const leftOver = sandboxes.filter(({ alive, state }) => !alive && state !== "kept").length;
    const detail = `${sandboxes.length} sandboxes, ${leftOver} left over`;
    if (leftOver > 0) return { name, status: "limited", detail, fix: "glovebox reap" };
    if (!isHomeTemporary()) return { name, status: "ok", detail };
    const where = `in ${gloveboxHome()}, because you have no home directory to write to`;
    return {
      name,
      status: "limited",
      detail: `${detail}, ${where}`,
      fix: "set GLOVEBOX_HOME to a directory that stays",
    };
  } catch (error) {
    const fix = "set GLOVEBOX_HOME to a directory of your own";
    return { name, status: "missing", detail: (error as Error).message, fix };
  }
}

async function temporaryFinding(): Promise<Finding> {
  const name = "temporary files";
  try {
    await access(tmpdir(), constants.W_OK | constants.X_OK);
    return { name, status: "ok", detail: tmpdir() };
  } catch {
    const fix = "set TMPDIR to a directory that you can write to";
    return { name, status: "missing", detail: `cannot write to ${tmpdir()}`, fix };
  }
}
