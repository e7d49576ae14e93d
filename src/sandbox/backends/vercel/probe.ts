import { SandboxError } from "../../../../contracts/errors.js";
import type { Finding } from "../../../../contracts/finding.js";
import { isInstalled } from "../../../machine/is-installed.js";
import { connect, importSdk, type VercelClient } from "./client.js";
import { findCredentials } from "./credentials.js";
import { toVercelError } from "./failure.js";

const PATIENCE = 10_000;

/** Checks whether the SDK is installed, whether there are credentials, and whether the service accepts them. */
export async function probe(): Promise<Finding[]> {
  const findings: Finding[] = [];
  try {
    // Without credentials it is not needed.
    if (hasCredentials() || !isInstalled("@vercel/sandbox")) await importSdk();
    findings.push({ name: "installed", status: "ok", detail: "@vercel/sandbox" });
  } catch (error) {
    findings.push(failure("installed", error));
    return findings;
  }
  let client: VercelClient;
  try {
    client = await connect();
    findings.push({ name: "credentials", status: "ok", detail: `for the project ${client.access.projectId}` });
  } catch (error) {
    findings.push(failure("credentials", error));
    return findings;
  }
  try {
    await client.sdk.Sandbox.list({ ...client.access, limit: 1, signal: AbortSignal.timeout(PATIENCE) });
    findings.push({ name: "reachable", status: "ok", detail: "the service answers" });
  } catch (error) {
    findings.push(failure("reachable", toVercelError(error)));
  }
  return findings;
}

function hasCredentials(): boolean {
  try {
    findCredentials({});
    return true;
  } catch {
    return false;
  }
}

function failure(name: string, error: unknown): Finding {
  const { message, hint } = error instanceof SandboxError ? error : { message: String(error), hint: undefined };
  return { name, status: "missing", detail: message, ...(hint !== undefined && { fix: hint }) };
}
