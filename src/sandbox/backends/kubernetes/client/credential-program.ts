import { spawn } from "node:child_process";
import { delimiter, isAbsolute } from "node:path";
import { SandboxError } from "../../../../../contracts/errors.js";
import { findProgram, trustedDirectories } from "../../../../machine/trusted-programs.js";
import type { ExecEntry } from "./kubeconfig.js";

/** Milliseconds. The clouds' programs may ask their service, and refresh a login first. */
const PATIENCE = 60_000;
const MAX_OUTPUT = 1 << 20;
const MAX_COMPLAINT = 2_000;

/** What a program prints, and what a kubeconfig may also contain itself. */
export interface ExecCredential {
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
  /** In milliseconds since 1970. */
  readonly expiresAt?: number;
}

/** Runs the program that a kubeconfig names, as kubectl does, without a terminal, and reads the credential that it prints. */
export async function runCredentialProgram(entry: ExecEntry, patience: number = PATIENCE): Promise<ExecCredential> {
  const { command, args, apiVersion, cluster, installHint } = entry;
  const directories = trustedDirectories(process.env["PATH"] ?? "");
  const program = isAbsolute(command) ? command : findProgram(command, directories);
  const install = installHint?.split("\n")[0];
  if (program === undefined) {
    throw new SandboxError("missing_dependency", `The kubeconfig's credential program ${command} is not in PATH`, {
      backend: "kubernetes",
      hint: install ?? `install ${command}`,
    });
  }
  const info = { apiVersion, kind: "ExecCredential", spec: { interactive: false, ...(cluster && { cluster }) } };
  const env = {
    ...process.env,
    PATH: directories.join(delimiter),
    ...entry.env,
    KUBERNETES_EXEC_INFO: JSON.stringify(info),
  };
  const { code, output, complaint } = await run(program, args, env, patience);
  if (code !== 0) {
    throw refuse(
      command,
      `${typeof code === "number" ? `exited with ${code}` : code}${complaint && `: ${complaint}`}`,
      install,
    );
  }
  return parseCredential(output, entry);
}

interface Outcome {
  /** Or why there is none. */
  readonly code: number | string;
  readonly output: string;
  readonly complaint: string;
}

function run(program: string, args: readonly string[], env: NodeJS.ProcessEnv, patience: number): Promise<Outcome> {
  return new Promise((resolve) => {
    // A process group of its own, which can be killed as one.
    const child = spawn(program, args, { env, detached: true, stdio: ["ignore", "pipe", "pipe"], windowsHide: true });
    let output = "";
    let complaint = "";
    const end = (code: number | string): void => {
      clearTimeout(timer);
      if (typeof code === "string") killGroup(child.pid);
      child.stdout.destroy();
      child.stderr.destroy();
      child.unref();
      resolve({ code, output, complaint: complaint.trim() });
    };
    const timer = setTimeout(() => end(`was not done after ${patience} ms`), patience);
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      output += chunk;
      if (output.length > MAX_OUTPUT) end(`printed more than ${MAX_OUTPUT} bytes`);
    });
    child.stderr.setEncoding("utf8").on("data", (chunk: string) => {
      complaint = (complaint + chunk).slice(-MAX_COMPLAINT);
    });
    child.once("error", ({ code }: NodeJS.ErrnoException) => end(`can't be run (${code})`));
    child.once("close", (code, signal) => end(code ?? `was ended by ${signal}`));
  });
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(process.platform === "win32" ? pid : -pid, "SIGKILL");
  } catch {
    // It has already ended.
  }
}

function parseCredential(output: string, { command, apiVersion }: ExecEntry): ExecCredential {
  let credential: { apiVersion?: unknown; kind?: unknown; status?: Record<string, unknown> } | null;
  try {
    credential = JSON.parse(output) as typeof credential;
  } catch {
    // The error of the parser shows a part of the text.
    throw refuse(command, "printed something that is not JSON");
  }
  const status = credential?.status;
  if (credential?.kind !== "ExecCredential" || credential.apiVersion !== apiVersion || typeof status !== "object") {
    throw refuse(command, `printed no ExecCredential of ${apiVersion}`);
  }
  const text = (key: string): string | undefined => {
    const value = status?.[key];
    return typeof value === "string" && value !== "" ? value : undefined;
  };
  const [token, cert, key] = [text("token"), text("clientCertificateData"), text("clientKeyData")];
  if (token === undefined && (cert === undefined || key === undefined)) throw refuse(command, "printed no credential");
  const until = text("expirationTimestamp");
  const expiresAt = until === undefined ? undefined : Date.parse(until);
  if (Number.isNaN(expiresAt)) throw refuse(command, "printed an expirationTimestamp that is no time");
  if (expiresAt !== undefined && expiresAt <= Date.now())
    throw refuse(command, "printed a credential that has expired");
  return {
    ...(token !== undefined && { token }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key }),
    ...(expiresAt !== undefined && { expiresAt }),
  };
}

function refuse(command: string, why: string, install?: string): SandboxError {
  return new SandboxError("unauthenticated", `The kubeconfig's credential program ${command} ${why}`, {
    backend: "kubernetes",
    hint: install ?? "run it yourself, or run: kubectl get pods",
  });
}
