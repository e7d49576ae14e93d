import { SandboxError, type SandboxErrorCode } from "../../../../contracts/errors.js";

const SHOWN = 2_000;

/** The relevant fields of errors from the SDK and its transport. */
interface Failure {
  code?: string;
  message?: string;
  cause?: unknown;
  exitCode?: number;
  stderr?: string;
  cmd?: readonly string[];
  response?: { status?: number };
}

/** Turns a failure of the SDK, the session or the engine into one of our errors, with the engine's text. */
export function daggerError(error: unknown, what: string): SandboxError {
  if (error instanceof SandboxError) return error;
  const causes = chainOf(error);
  const message = `${what}: ${textOf(error as Failure)}`.slice(0, SHOWN);
  const status = causes.map(({ response }) => response?.status).find((found) => found !== undefined);
  const details = { backend: "dagger", cause: error };
  if (status === 401 || status === 403) {
    return new SandboxError("unauthenticated", `${what}: the Dagger session refused the token`, {
      ...details,
      hint: "set DAGGER_SESSION_TOKEN to the token of the session at DAGGER_SESSION_PORT",
    });
  }
  const [code, hint] = codeOf(causes, status, message);
  return new SandboxError(code, message, { ...details, hint });
}

function codeOf(causes: readonly Failure[], status: number | undefined, message: string): [SandboxErrorCode, string?] {
  const codes = causes.map(({ code }) => code);
  if (codes.includes("ECONNREFUSED")) return ["unavailable", "no Dagger session listens there; is it still open?"];
  if (status === 502 || status === 503 || /ECONNRESET|EPIPE|socket hang up/.test(`${codes} ${message}`)) {
    return ["backend_lost", "the Dagger engine is gone; open a new sandbox"];
  }
  if (/missing shared result|session .*not found/.test(message)) return ["backend_lost"];
  if (/failed to resolve|pull access denied|manifest unknown|not found: image/.test(message)) {
    return ["not_found", "the engine must be able to pull the image"];
  }
  if (/no space left/.test(message)) return ["no_space"];
  return ["unavailable"];
}

/** An engine's error is text. For a failed command, its stderr says more than the exit code alone. */
function textOf({ message = "unknown", exitCode, stderr, cmd }: Failure): string {
  const first = message.split("\n")[0] ?? "";
  if (exitCode === undefined) return first;
  return `${(cmd ?? []).join(" ")} ended with ${exitCode}${stderr ? `: ${stderr}` : ""}`;
}

function chainOf(error: unknown): Failure[] {
  const chain: Failure[] = [];
  for (let at = error; at instanceof Error && chain.length < 8; at = at.cause) chain.push(at as Failure);
  return chain;
}
