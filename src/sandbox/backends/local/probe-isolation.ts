import { toSandboxError } from "../../../../contracts/errors.js";
import type { Finding } from "../../../../contracts/finding.js";
import { standing } from "../../../machine/standing.js";
import type { Sandbox, SandboxOptions } from "../../types.js";

/** Opens a local sandbox. */
export type OpenLocal = (opts: SandboxOptions) => Promise<Sandbox>;

/** Opens a temporary sandbox and checks its isolation from the inside. */
export async function probeIsolation(open: OpenLocal): Promise<Finding[]> {
  try {
    await using sandbox = await open({});
    const { stdout, exitCode } = await sandbox.exec({ argv: ["cat", "/proc/self/status"], timeout: 10_000 });
    if (exitCode !== 0) throw new Error(`cat /proc/self/status ended with ${exitCode} in the sandbox`);
    return [
      { name: "self-test", status: "ok", detail: "a sandbox opened, checked its isolation and ran a command" },
      checked("seccomp", field(stdout, "Seccomp") === "2", "a filter is active for every command"),
      checked(
        "privileges",
        /^0+$/.test(field(stdout, "CapEff") ?? "") && field(stdout, "NoNewPrivs") === "1",
        "no capabilities, and no way to gain any",
      ),
      standing() === "root"
        ? { name: "idmapped mounts", status: "ok", detail: "the work directory uses one; commands don't run as root" }
        : { name: "idmapped mounts", status: "unused", detail: "needed by root with CAP_SYS_ADMIN only" },
    ];
  } catch (error) {
    const { message, hint } = toSandboxError(error);
    const finding: Finding = { name: "self-test", status: "missing", detail: message };
    return [hint === undefined ? finding : { ...finding, fix: hint }];
  }
}

function checked(name: string, works: boolean, detail: string): Finding {
  return works ? { name, status: "ok", detail } : { name, status: "missing", detail: "not in effect in the sandbox" };
}

function field(status: string, name: string): string | undefined {
  return new RegExp(`^${name}:\\s*(\\S+)$`, "m").exec(status)?.[1];
}
