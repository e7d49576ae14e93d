import { SandboxError } from "../../../../contracts/errors.js";
import { checkOptions, checkText, invalidArgument, type Shape, whole } from "../../../util/checks.js";
import { parseGitHubRepo } from "../../../util/github.js";
import type { SandboxOptions } from "../../types.js";
import type { DaytonaOptions } from "./daytona-options.js";

export const BACKEND = "daytona";
export const DEFAULT_SNAPSHOT = "daytona-medium";
const DEFAULT_API_URL = "https://app.daytona.io/api";
const DEFAULT_AUTO_STOP = 30;
const DEFAULT_TTL = 24 * 60;
const LOOPBACK = /^(localhost|127(\.\d+){3}|\[::1\])$/;

/** Where the service is and who asks. */
export interface Account {
  readonly apiKey: string;
  readonly apiUrl: string;
  readonly target: string;
  /** Injected by the caller. */
  readonly client?: unknown;
}

/** A repository to be cloned. */
export interface Source {
  readonly owner: string;
  readonly name: string;
  readonly url: string;
}

const positive = whole(1, 1_000_000);
const resourcesShape: Shape = new Map([
  ["cpu", positive],
  ["memory", positive],
  ["disk", positive],
]);

const daytonaShape: Shape = new Map([
  ["apiKey", checkKey],
  ["apiUrl", checkServiceUrl],
  ["target", (value, name) => checkText(value, name)],
  ["snapshot", (value, name) => checkText(value, name)],
  ["resources", (value, name) => checkOptions(value, resourcesShape, name)],
  ["autoStopMinutes", whole(1, 1_000_000)],
  ["ttlMinutes", whole(0, 10_000_000)],
  ["client", checkClient],
]);

/** Checks what only this backend knows of the options. */
export function checkDaytonaOptions(value: unknown): DaytonaOptions {
  checkOptions(value, daytonaShape, "daytona");
  return value as DaytonaOptions;
}

/** Reads the account out of the options and the environment; refuses what cannot be one. */
export function readAccount(opts: SandboxOptions, env: NodeJS.ProcessEnv = process.env): Account {
  const { daytona = {} } = opts;
  const apiKey = daytona.apiKey ?? env["DAYTONA_API_KEY"] ?? "";
  if (apiKey === "" && daytona.client === undefined) {
    throw new SandboxError(
      "unauthenticated",
      "Daytona API key required (set DAYTONA_API_KEY or pass opts.daytona.apiKey)",
      { hint: "make one at https://app.daytona.io/dashboard/keys" },
    );
  }
  if (apiKey !== "") checkKey(apiKey, "DAYTONA_API_KEY");
  const apiUrl = daytona.apiUrl ?? (env["DAYTONA_API_URL"] || DEFAULT_API_URL);
  checkServiceUrl(apiUrl, "DAYTONA_API_URL");
  const target = daytona.target ?? (env["DAYTONA_TARGET"] || "us");
  return { apiKey, apiUrl, target, ...(daytona.client === undefined ? undefined : { client: daytona.client }) };
}

/** How long the service lets a sandbox be, in minutes. */
export function readLifetime(opts: SandboxOptions): { autoStop: number; ttl: number } {
  const { autoStopMinutes = DEFAULT_AUTO_STOP, ttlMinutes = DEFAULT_TTL } = opts.daytona ?? {};
  return { autoStop: autoStopMinutes, ttl: ttlMinutes };
}

/** Turns `repo` into what is cloned. A path of this machine is refused: the service cannot see it. */
export function readSource(repo: string, env: NodeJS.ProcessEnv = process.env): Source {
  if (isLocalPath(repo)) {
    throw new SandboxError(
      "invalid_argument",
      "Daytona sandbox requires a GitHub repo URL (e.g. org/repo), not a local path",
      { hint: `push ${JSON.stringify(repo)} to GitHub, or use the backend "local" or "docker"` },
    );
  }
  const server = (env["GITHUB_SERVER_URL"] || "https://github.com").replace(/\/+$/, "");
  checkServiceUrl(server, "GITHUB_SERVER_URL");
  try {
    const { owner, name } = parseGitHubRepo(fromSsh(repo));
    return { owner, name, url: `${server}/${owner}/${name}.git` };
  } catch (cause) {
    throw new SandboxError("invalid_argument", `Invalid repo: ${(cause as Error).message}`, {
      cause,
      hint: "the Daytona backend clones from GitHub; give owner/name",
    });
  }
}

/** The same repository by HTTPS: the token is for that. */
function fromSsh(repo: string): string {
  return repo.replace(/^(?:ssh:\/\/)?git@github\.com[:/]/i, "https://github.com/");
}

function isLocalPath(repo: string): boolean {
  if (/^(?:[/~]|\.{1,2}(?:\/|$)|[A-Za-z]:|file:)/.test(repo)) return true;
  return !repo.includes("/");
}

function checkKey(value: unknown, name: string): void {
  // Never shown: it may be a key with a line end after it.
  if (typeof value === "string" && /^[\x21-\x7e]+$/.test(value)) return;
  throw new SandboxError("invalid_argument", `Invalid ${name}: expected printable characters without spaces`);
}

function checkServiceUrl(value: unknown, name: string): void {
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined;
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && LOOPBACK.test(url.hostname));
  if (!isSafe || url?.username !== "" || url.password !== "") {
    throw invalidArgument(name, "an https URL, or an http URL on loopback, without credentials", value);
  }
}

function checkClient(value: unknown, name: string): void {
  const client = value as { create?: unknown; get?: unknown } | null;
  if (typeof client?.create !== "function" || typeof client.get !== "function") {
    throw invalidArgument(name, "a client of @daytona/sdk", typeof value);
  }
}
