import { setTimeout as sleep } from "node:timers/promises";
import { SandboxError, type SandboxErrorCode } from "../../../contracts/errors.js";
import type { GitHubRepo } from "../../util/git/github.js";
import { toInertLine } from "../../util/inert-text.js";
import { redact, truncate } from "../../util/sanitize.js";
import type { GitHubHost } from "./github-host.js";

/** A pull request as much as a run needs of it. */
export interface PullRequest {
  readonly url: string;
  readonly number: number;
  readonly draft: boolean;
}

/** What a new pull request says. */
export interface NewPullRequest {
  readonly title: string;
  readonly body: string;
  /** The branch that was pushed. */
  readonly head: string;
  readonly base: string;
  readonly draft: boolean;
}

/** The few things that a run asks GitHub for. Failures are `SandboxError`s without the token. */
export interface GitHubClient {
  /** The branch that pull requests go against unless another one is asked for. */
  defaultBranch(): Promise<string>;
  /** The open pull request of a branch. */
  findPullRequest(head: string): Promise<PullRequest | undefined>;
  createPullRequest(request: NewPullRequest): Promise<PullRequest>;
  /** The tree of the commit that a branch is at, as the remote has it. */
  treeOfBranch(branch: string): Promise<string | undefined>;
}

const TIMEOUT = 30_000;
const MAX_ANSWER = 4 * 1024 * 1024;
const MAX_REASON = 1_000;
/** Milliseconds that GitHub may ask to wait for; more is an error. */
const PATIENCE = 60_000;

const CODES: Readonly<Record<number, SandboxErrorCode>> = {
  401: "unauthenticated",
  403: "permission_denied",
  404: "not_found",
  409: "conflict",
  422: "invalid_argument",
  429: "unavailable",
};

/** Speaks GitHub's REST interface about one repository, with nothing but `fetch`. */
export function createGitHubClient(
  host: GitHubHost,
  { owner, name }: GitHubRepo,
  token: string,
  signal?: AbortSignal,
): GitHubClient {
  const base = `${host.apiUrl}/repos/${owner}/${name}`;
  const ask = (path: string, body?: unknown): Promise<unknown> => request(`${base}${path}`, token, body, signal);
  return {
    async defaultBranch() {
      const branch = field(await ask(""), "default_branch");
      if (typeof branch === "string" && branch !== "") return branch;
      throw new SandboxError("unavailable", `GitHub does not name the default branch of ${owner}/${name}`);
    },
    async findPullRequest(head) {
      const query = new URLSearchParams({ head: `${owner}:${head}`, state: "open", per_page: "1" });
      const found = await ask(`/pulls?${query}`);
      return Array.isArray(found) && found.length > 0 ? toPull(found[0]) : undefined;
    },
    async createPullRequest(request) {
      return toPull(await ask("/pulls", request));
    },
    async treeOfBranch(branch) {
      // A tag may have the same name.
      const ref = encodeURIComponent(`heads/${branch}`);
      const commit = field(field(await ask(`/commits/${ref}`), "commit"), "tree");
      const sha = field(commit, "sha");
      return typeof sha === "string" ? sha : undefined;
    },
  };
}

/** Makes a request, again after as long as GitHub asks for: what is refused for a limit was not done. */
async function request(url: string, token: string, body: unknown, signal?: AbortSignal): Promise<unknown> {
  for (let waited = 0; ; ) {
    const { answer, text } = await requestOnce(url, token, body, signal);
    if (answer.ok) return parseAnswer("GitHub", text);
    const wait = limitOf(answer, text);
    if (wait === undefined || waited + wait > PATIENCE) throw refusalOf(answer, text, token, wait);
    waited += wait;
    await sleep(wait, undefined, signal && { signal });
  }
}

/** Milliseconds until GitHub takes requests again, infinite when it does not say; undefined when no limit was reached. */
function limitOf({ status, headers }: Response, text: string): number | undefined {
  if (status !== 403 && status !== 429) return undefined;
  const after = headers.get("retry-after");
  if (after !== null && /^\d+$/.test(after)) return Number(after) * 1_000;
  const reset = Number(headers.get("x-ratelimit-reset"));
  if (headers.get("x-ratelimit-remaining") === "0" && reset > 0) return Math.max(0, reset * 1_000 - Date.now());
  return status === 429 || /rate limit/i.test(text.slice(0, MAX_REASON)) ? Number.POSITIVE_INFINITY : undefined;
}

function refusalOf(answer: Response, text: string, token: string, wait: number | undefined): SandboxError {
  const { status } = answer;
  const code = CODES[status] ?? (status >= 500 ? "unavailable" : "internal");
  const when = wait === undefined || !Number.isFinite(wait) ? "later" : `in ${Math.ceil(wait / 1_000)} s`;
  return new SandboxError(
    wait === undefined ? code : "unavailable",
    `GitHub answered ${status}: ${safe(complaint(answer, text), token)}`,
    {
      operation: "github",
      hint: wait === undefined ? undefined : `too many requests were made with this token; try again ${when}`,
    },
  );
}

async function requestOnce(
  url: string,
  token: string,
  body: unknown,
  signal?: AbortSignal,
): Promise<{ answer: Response; text: string }> {
  const deadline = AbortSignal.timeout(TIMEOUT);
  let answer: Response;
  let text: string;
  try {
    answer = await fetch(url, {
      method: body === undefined ? "GET" : "POST",
      headers: {
        Accept: "application/vnd.github+json",
        Authorization: `Bearer ${token}`,
        "X-GitHub-Api-Version": "2022-11-28",
        "User-Agent": "glovebox",
        ...(body !== undefined && { "Content-Type": "application/json" }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      // The token is meant for this address and no other.
      redirect: "manual",
      signal: signal === undefined ? deadline : AbortSignal.any([deadline, signal]),
    });
    text = await readBounded(answer);
  } catch (error) {
    throw new SandboxError("unavailable", `GitHub cannot be reached: ${safe(reasonOf(error), token)}`, {
      operation: "github",
    });
  }
  return { answer, text };
}

async function readBounded(answer: Response): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  for await (const chunk of answer.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length > MAX_ANSWER) throw new Error(`an answer of more than ${MAX_ANSWER} bytes`);
  }
  return text + decoder.decode();
}

/** Reads what somebody answered as JSON. */
export function parseAnswer(who: "GitHub" | "gh", text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new SandboxError("unavailable", `${who} did not answer with JSON`, { operation: who.toLowerCase() });
  }
}

function complaint(answer: Response, text: string): string {
  if (answer.status >= 300 && answer.status < 400) return "it has moved; name the repository as it is called now";
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return answer.statusText || "no reason given";
  }
  const errors = field(body, "errors");
  const details = Array.isArray(errors) ? errors.map(detailOf) : [];
  return (
    [field(body, "message"), ...details].filter((part) => typeof part === "string").join("; ") || "no reason given"
  );
}

/** One that has no words of its own says what is wrong with which field. */
function detailOf(error: unknown): unknown {
  if (typeof error === "string") return error;
  const [message, name, code] = [field(error, "message"), field(error, "field"), field(error, "code")];
  return message ?? (typeof name === "string" ? `${name}: ${String(code)}` : code);
}

function reasonOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return cause instanceof Error ? cause.message || String((cause as NodeJS.ErrnoException).code) : String(cause);
}

function safe(text: string, token: string): string {
  return truncate(toInertLine(redact(text, { secrets: [token] })), MAX_REASON);
}

/** A pull request that somebody answered with. */
export function toPullRequest(who: "GitHub" | "gh", url: unknown, number: unknown, draft: unknown): PullRequest {
  if (typeof url === "string" && /^https?:\/\/[\x21-\x7e]+$/.test(url) && typeof number === "number") {
    return { url, number, draft: draft === true };
  }
  throw new SandboxError("unavailable", `${who} did not answer with a pull request`);
}

function toPull(answer: unknown): PullRequest {
  return toPullRequest("GitHub", field(answer, "html_url"), field(answer, "number"), field(answer, "draft"));
}

function field(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>)[name] : undefined;
}
