import { toSandboxError } from "../../../../contracts/errors.js";
import { loadUserConfig, policiesInForce } from "../../../sandbox/host.js";
import type { Finding } from "../../../sandbox.js";

/** The files of settings that are in force, or that stop everything because they can't be used. */
export async function settingsFindings(): Promise<Finding[]> {
  return [
    ...(await findingsOf("configuration", async () => [await loadUserConfig()])),
    ...(await findingsOf("policy", policiesInForce)),
  ];
}

async function findingsOf(
  name: string,
  load: () => Promise<readonly ({ readonly path: string } | undefined)[]>,
): Promise<Finding[]> {
  try {
    const files = await load();
    return files.flatMap((file): Finding[] => (file === undefined ? [] : [{ name, status: "ok", detail: file.path }]));
  } catch (error) {
    const { message, hint } = toSandboxError(error);
    return [{ name, status: "missing", detail: message, ...(hint !== undefined && { fix: hint }) }];
  }
}
