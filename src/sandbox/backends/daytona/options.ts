import { SandboxError } from "../../../../contracts/errors.js";
import { parseGitHubRepo } from "../../../util/git/github.js";
import * as is from "../../../util/schema.js";
import { check, invalidArgument, type Parser, parser } from "../../../util/schema.js";
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

const serviceUrl = is.custom<string>((value, name) => {
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined;
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && LOOPBACK.test(url.hostname));
  if (isSafe && url?.username === "" && url.password === "") return;
  throw invalidArgument(name, "an https URL, or an http URL on loopback, without credentials", value);
});

const client = is.custom<unknown>((value, name) => {
  const { create, get } = (value ?? {}) as { create?: unknown; get?: unknown };
  if (typeof create === "function" && typeof get === "function") return;
  throw invalidArgument(name, "a client of @daytona/sdk", typeof value);
});

const amount = is.whole(1, 1_000_000);

/** What only this backend knows of the options. */
export const daytonaOptions: Parser<DaytonaOptions> = parser(
  BACKEND,
  is.object<DaytonaOptions>({
    apiKey: is.token,
    apiUrl: serviceUrl,
    target: is.text,
    snapshot: is.text,
    resources: is.object({ cpu: amount, memory: amount, disk: amount }),
    autoStopMinutes: amount,
    ttlMinutes: is.whole(0, 10_000_000),
    client,
  }),
);

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
  if (apiKey !== "") check(apiKey, is.token, "DAYTONA_API_KEY");
  const apiUrl = daytona.apiUrl ?? (env["DAYTONA_API_URL"] || DEFAULT_API_URL);
  check(apiUrl, serviceUrl, "DAYTONA_API_URL");
  const target = daytona.target ?? (env["DAYTONA_TARGET"] || "us");
  return { apiKey, apiUrl, target, ...(daytona.client === undefined ? undefined : { client: daytona.client }) };
}

/**
 * How long the service lets a sandbox be, in minutes, rounded up. This process is the first to end an expired or idle sandbox; the service does it
 * when the process is dead. A kept sandbox has a ttl only if `ttl` asked for one.
 */
export function readLifetime(opts: SandboxOptions, expiresAt?: string): { autoStop: number; ttl: number } {
  const { autoStopMinutes = idleMinutes(opts) ?? DEFAULT_AUTO_STOP, ttlMinutes = DEFAULT_TTL } = opts.daytona ?? {};
  if (expiresAt === undefined)
    return { autoStop: autoStopMinutes, ttl: (opts.keep ?? false) === false ? ttlMinutes : 0 };
  return { autoStop: autoStopMinutes, ttl: Math.max(1, toMinutes(Date.parse(expiresAt) - Date.now())) };
}

/** The interval of the service that stands for `idleTimeout`. */
export function idleMinutes({ idleTimeout }: SandboxOptions): number | undefined {
  return idleTimeout === undefined ? undefined : toMinutes(idleTimeout);
}

function toMinutes(ms: number): number {
  return Math.ceil(ms / 60_000);
}

/** Refuses two values for one timer of the service. */
export function checkLifetime({ ttl, idleTimeout, id, daytona = {} }: SandboxOptions): void {
  if (id !== undefined) return;
  for (const [name, value, own] of [
    ["ttl", ttl, "ttlMinutes"],
    ["idleTimeout", idleTimeout, "autoStopMinutes"],
  ] as const) {
    if (value === undefined || daytona[own] === undefined) continue;
    throw new SandboxError(
      "invalid_argument",
      `Option ${name} (${value}) does not go together with daytona.${own} (${daytona[own]})`,
      { hint: `omit daytona.${own}: the service gets ${name}, too` },
    );
  }
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
  check(server, serviceUrl, "GITHUB_SERVER_URL");
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
