import { SandboxError, type SandboxErrorCode, type SandboxErrorDetails } from "../../../../../contracts/errors.js";
import { asRoot, installLine, isInSystem } from "../../../../machine/install-line.js";
import type { EngineEndpoint } from "./endpoint.js";

/** A failure that the engine reports. */
export class EngineError extends SandboxError {
  /** The HTTP status; undefined for an error in a stream that started with success. */
  readonly status: number | undefined;

  constructor(code: SandboxErrorCode, message: string, status: number | undefined, details: SandboxErrorDetails = {}) {
    super(code, message, { backend: "docker", ...details });
    this.status = status;
  }
}

const CODES: Readonly<Record<number, SandboxErrorCode>> = {
  400: "invalid_argument",
  401: "unauthenticated",
  403: "permission_denied",
  404: "not_found",
  409: "conflict",
  503: "unavailable",
};

/** Failures that only the text of the message shows. The first match wins. */
const WORDS: readonly (readonly [RegExp, SandboxErrorCode])[] = [
  [/no space left on device|disk quota exceeded/i, "no_space"],
  [/unauthorized|authentication required|no basic auth credentials|incorrect username or password/i, "unauthenticated"],
  [
    /manifest unknown|repository does not exist|no such (image|container|network|volume)|not found: manifest/i,
    "not_found",
  ],
  [
    /i\/o timeout|connection (refused|reset|timed out)|no (such host|route to host)|network is unreachable|Temporary failure in name resolution/i,
    "unavailable",
  ],
  [
    /server misbehaving|TLS handshake timeout|deadline exceeded|request canceled while waiting|"[^"]*": EOF$/i,
    "unavailable",
  ],
  [/toomanyrequests|too many requests|unexpected (HTTP status|status (code|from) .*): 5\d\d/i, "unavailable"],
];

/** The error for an answer whose status is no success. */
export function engineError(what: string, status: number, body: string): EngineError {
  const message = messageOf(body) || `status ${status}`;
  return new EngineError(codeOf(status, message), `Docker refuses ${what}: ${message}`, status);
}

/** The error for a failure reported in a progress stream, with the end of its log. */
export function progressError(what: string, message: string, tail: readonly string[] = []): EngineError {
  const log = tail.length > 0 ? `\n${tail.join("\n")}` : "";
  return new EngineError(codeOf(500, message), `${what} failed: ${message}${log}`, undefined);
}

function codeOf(status: number, message: string): SandboxErrorCode {
  // The text is more precise than the status: a 404 for a pull may mean that a login is missing.
  return WORDS.find(([words]) => words.test(message))?.[1] ?? CODES[status] ?? "internal";
}

function messageOf(body: string): string {
  try {
    const { message } = JSON.parse(body) as { message?: unknown };
    if (typeof message === "string") return message.trim();
  } catch {
    // Not JSON: the answer of a proxy in between.
  }
  return body.trim().slice(0, 500);
}

/** The error for a call without an answer: nothing listens, or the connection broke. */
export function connectionError(error: unknown, endpoint: EngineEndpoint, what: string): SandboxError {
  if (error instanceof SandboxError) return error;
  const { code, message } = error as NodeJS.ErrnoException;
  const details = { backend: "docker", cause: error };
  switch (code) {
    case "ENOENT":
    case "ECONNREFUSED":
    case "ENOTFOUND":
    case "EAI_AGAIN":
    case "EHOSTUNREACH":
    case "ENETUNREACH":
    case "ETIMEDOUT":
      return new SandboxError("unavailable", `No Docker engine answers at ${endpoint.name}`, {
        ...details,
        hint: startLine(endpoint),
      });
    case "EACCES":
    case "EPERM":
      return new SandboxError("permission_denied", `Permission denied for the Docker engine at ${endpoint.name}`, {
        ...details,
        hint: "sudo usermod -aG docker $USER, then log in again",
      });
    default:
      if (/^(ERR_TLS|ERR_SSL|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO)/.test(code ?? "")) {
        return new SandboxError("unauthenticated", `The Docker engine at ${endpoint.name} is not trusted: ${message}`, {
          ...details,
          hint: "DOCKER_CERT_PATH names the folder with ca.pem, cert.pem and key.pem",
        });
      }
      return new SandboxError("backend_lost", `The Docker engine was lost during ${what}: ${message}`, details);
  }
}

/** The command that starts the engine, or that installs one. */
export function startLine(endpoint: EngineEndpoint): string {
  if (endpoint.host !== undefined) return `start the engine on ${endpoint.host}, or set DOCKER_HOST`;
  if (process.platform === "darwin") return "open -a Docker";
  if (process.platform === "win32") return "start Docker Desktop";
  const own = endpoint.socketPath === "/var/run/docker.sock" ? "" : ", or set DOCKER_HOST";
  if (!["docker", "dockerd", "podman"].some((name) => isInSystem(name)))
    return `${installLine("docker", { inDebian: "docker.io" })}${own}`;
  return `${asRoot(["systemctl start docker"])}${own}`;
}
