import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";
import type { Finding } from "../../../../contracts/finding.js";
import { guestBinary } from "../../guest.js";
import type { Engine } from "./engine/engine.js";
import { engineOf } from "./engine/engines.js";

const PATIENCE = 3_000;

interface Info {
  ServerVersion?: string;
  OSType?: string;
  Architecture?: string;
  SecurityOptions?: string[];
  MemoryLimit?: boolean;
  PidsLimit?: boolean;
  CPUCfsQuota?: boolean;
}

/** Checks the engine: whether it answers, which limits it enforces, whether there is a guest for it. */
export async function probeDocker(): Promise<Finding[]> {
  let engine: Engine;
  let info: Info;
  try {
    engine = engineOf();
    info = await engine.call<Info>("GET", "/info", { timeout: PATIENCE });
  } catch (error) {
    return [missing("engine", error as SandboxError), program()];
  }
  const detail = `version ${info.ServerVersion} at ${engine.endpoint.name}`;
  return [
    { name: "engine", status: "ok", detail },
    guestFinding(info),
    limitsFinding(info),
    wallsFinding(info),
    program(),
  ];
}

function guestFinding({ OSType, Architecture }: Info): Finding {
  const name = "guest";
  const arch = { x86_64: "x64", amd64: "x64", aarch64: "arm64", arm64: "arm64" }[Architecture ?? ""];
  try {
    if (OSType !== "linux" || arch === undefined) throw new SandboxError("unsupported", `${OSType} on ${Architecture}`);
    return { name, status: "ok", detail: guestBinary(arch) };
  } catch (error) {
    return missing(name, error as SandboxError);
  }
}

function missing(name: string, { message, hint }: SandboxError): Finding {
  return { name, status: "missing", detail: message, ...(hint !== undefined && { fix: hint }) };
}

function limitsFinding({ MemoryLimit, PidsLimit, CPUCfsQuota }: Info): Finding {
  const kept = { memory: MemoryLimit, pids: PidsLimit, cpus: CPUCfsQuota };
  const lacking = Object.entries(kept).flatMap(([limit, isKept]) => (isKept === false ? [limit] : []));
  if (lacking.length === 0) return { name: "limits", status: "ok", detail: "memory, pids, cpus" };
  return { name: "limits", status: "limited", detail: `the engine's kernel does not enforce: ${lacking.join(", ")}` };
}

function wallsFinding({ SecurityOptions = [] }: Info): Finding {
  const found = ["seccomp", "apparmor", "selinux", "rootless", "userns"].filter((name) =>
    SecurityOptions.some((option) => option.includes(`name=${name}`)),
  );
  if (found.includes("seccomp")) return { name: "confinement", status: "ok", detail: found.join(", ") };
  return { name: "confinement", status: "limited", detail: "the engine filters no system calls" };
}

function program(): Finding {
  const name = "command line";
  const path = (process.env["PATH"] ?? "").split(delimiter).map((directory) => join(directory, "docker"));
  const found = path.find(isExecutable);
  if (found !== undefined) return { name, status: "ok", detail: found };
  return { name, status: "unused", detail: "docker is not in PATH; it is not needed" };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
