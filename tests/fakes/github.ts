import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { type GitServer, serveGit, type Trick } from "../support/git/server.js";
import { git } from "../support/scratch.js";

/** A pull request that the fake holds. */
export interface FakePull {
  number: number;
  title: string;
  body: string;
  head: string;
  base: string;
  draft: boolean;
  state: "open" | "closed";
}

/** A GitHub of its own on this machine: repositories over HTTP with a token, and the REST interface to them. */
export interface FakeGitHub extends AsyncDisposable {
  /** What to set so that everything talks to it. */
  readonly env: { GITHUB_SERVER_URL: string; GITHUB_API_URL: string; GITHUB_TOKEN: string };
  readonly requests: GitServer["requests"];
  readonly pulls: FakePull[];
  /** Path of the bare repository `acme/widgets`. */
  readonly remote: string;
  readonly url: string;
  /** Answers the next calls of the REST interface instead of the fake, while it gives an answer. */
  refuse:
    | ((
        method: string,
        path: string,
        body: string,
      ) => { status: number; message: string; headers?: Record<string, string> } | undefined)
    | undefined;
  /** Comes first on every request. */
  trick: Trick;
}

const TOKEN = "ghp_Zm9vYmFyYmF6cXV4MTIzNDU2Nzg5MA+/=x";
const REPOSITORY = "/api/v3/repos/acme/widgets";

/** Starts the fake with the repository `acme/widgets`, empty, whose default branch is `trunk` unless another is named. */
export async function serveGitHub(root: string, defaultBranch = "trunk", isPublic = false): Promise<FakeGitHub> {
  const remote = join(root, "acme", "widgets.git");
  mkdirSync(remote, { recursive: true });
  git(remote, "init", "--quiet", "--bare", `--initial-branch=${defaultBranch}`);
  git(remote, "config", "http.receivepack", "true");
  const pulls: FakePull[] = [];
  const state: Pick<FakeGitHub, "refuse" | "trick"> = { refuse: undefined, trick: () => false };
  const api: Trick = (request, response) => {
    if (state.trick(request, response)) return true;
    if (!request.url?.startsWith("/api/v3/")) return false;
    void readAll(request).then((body) => {
      const { status, answer, headers } = respond(request, body, state.refuse, {
        pulls,
        remote,
        defaultBranch,
        server,
      });
      response.writeHead(status, { "Content-Type": "application/json; charset=utf-8", ...headers });
      response.end(JSON.stringify(answer));
    });
    return true;
  };
  const server: GitServer = await serveGit(root, TOKEN, api, isPublic);
  return Object.assign(state, {
    env: {
      GITHUB_SERVER_URL: server.origin,
      GITHUB_API_URL: `${server.origin}/api/v3`,
      GITHUB_TOKEN: TOKEN,
    },
    requests: server.requests,
    pulls,
    remote,
    url: `${server.origin}/acme/widgets.git`,
    [Symbol.asyncDispose]: () => server.close(),
  });
}

interface Held {
  pulls: FakePull[];
  remote: string;
  defaultBranch: string;
  server: GitServer;
}

/** An answer of the REST interface. */
interface Answer {
  status: number;
  answer: unknown;
  headers?: Record<string, string>;
}

const VERSION = "2022-11-28";
const ACCEPTED = /^(application\/vnd\.github\+json|application\/json|\*\/\*)$/;
const LONGEST_TITLE = 256;
const LONGEST_BODY = 65_536;
const KEYS: Readonly<Record<string, "string" | "boolean" | "number">> = {
  ...{ title: "string", head: "string", head_repo: "string", base: "string", body: "string" },
  ...{ maintainer_can_modify: "boolean", draft: "boolean", issue: "number" },
};

function respond(request: IncomingMessage, body: string, refuse: FakeGitHub["refuse"], held: Held): Answer {
  const { method = "", url = "", headers } = request;
  const { pathname, searchParams } = new URL(url, "http://localhost");
  if (headers["user-agent"] === undefined) return problem(403, "Request forbidden by administrative rules.");
  if (!ACCEPTED.test(headers.accept ?? "*/*")) return problem(415, "Unsupported 'Accept' header");
  if ((headers["x-github-api-version"] ?? VERSION) !== VERSION) return problem(400, "Unsupported API version");
  if (headers.authorization !== `Bearer ${TOKEN}`) {
    // What is private is not even there for somebody without a name.
    return headers.authorization === undefined ? problem(404, "Not Found") : problem(401, "Bad credentials");
  }
  const refused = refuse?.(method, pathname, body);
  if (refused !== undefined) return { ...problem(refused.status, refused.message), headers: refused.headers ?? {} };
  if (method === "GET" && pathname === REPOSITORY) {
    return {
      status: 200,
      answer: { id: 1, default_branch: held.defaultBranch, full_name: "acme/widgets", private: true },
    };
  }
  if (method === "GET" && pathname === `${REPOSITORY}/pulls`) return list(searchParams, held);
  if (method === "GET" && pathname.startsWith(`${REPOSITORY}/commits/`)) {
    const name = decodeURIComponent(pathname.slice(`${REPOSITORY}/commits/`.length));
    // As git itself looks a name up: a tag comes before a branch.
    const commit = resolve(held.remote, `${name}^{commit}`);
    if (commit === undefined) return problem(422, `No commit found for SHA: ${name}`);
    const tree = resolve(held.remote, `${commit}^{tree}`);
    return { status: 200, answer: { sha: commit, commit: { tree: { sha: tree } } } };
  }
  if (method === "POST" && pathname === `${REPOSITORY}/pulls`) return create(body, held);
  return problem(404, "Not Found");
}

function problem(status: number, message: string, errors?: readonly Record<string, string>[]): Answer {
  const answer = { message, documentation_url: "https://docs.github.com/rest", status: String(status) };
  return { status, answer: errors === undefined ? answer : { ...answer, errors } };
}

/** A filter that does not name an owner is none, and a page has no more than it is asked for. */
function list(query: URLSearchParams, held: Held): Answer {
  const wanted = query.get("head") ?? "";
  const [owner, branch] = wanted.includes(":") ? wanted.split(/:(.*)/s) : [undefined, undefined];
  const state = query.get("state") ?? "open";
  const found = held.pulls.filter(
    (pull) =>
      (owner === undefined || (owner === "acme" && pull.head === branch)) && ["all", pull.state].includes(state),
  );
  const size = Math.min(Number(query.get("per_page") ?? 30) || 30, 100);
  const page = Math.max(1, Number(query.get("page") ?? 1) || 1);
  const items = found.slice((page - 1) * size, page * size).map((pull) => shown(pull, held));
  const next = `<${held.server.origin}${REPOSITORY}/pulls?page=${page + 1}>; rel="next"`;
  return { status: 200, answer: items, headers: page * size < found.length ? { Link: next } : {} };
}

function create(text: string, held: Held): Answer {
  const invalid = (error: Record<string, string>): Answer =>
    problem(422, "Validation Failed", [{ resource: "PullRequest", ...error }]);
  let wanted: FakePull;
  try {
    wanted = JSON.parse(text) as FakePull;
  } catch {
    return problem(400, "Problems parsing JSON");
  }
  const malformed = malformation(wanted);
  if (malformed !== undefined) return problem(422, `Invalid request.\n\n${malformed}`);
  const head = resolve(held.remote, `refs/heads/${wanted.head}`, "show-ref");
  const base = resolve(held.remote, `refs/heads/${wanted.base}`, "show-ref");
  if (head === undefined) return invalid({ field: "head", code: "invalid" });
  if (base === undefined) return invalid({ field: "base", code: "invalid" });
  if (resolve(held.remote, `${base}..${head}`, "rev-list") === "") {
    return invalid({ code: "custom", message: `No commits between ${wanted.base} and ${wanted.head}` });
  }
  const tooLong = (field: string, most: number): Answer =>
    invalid({ field, code: "custom", message: `${field} is too long (maximum is ${most} characters)` });
  if ([...wanted.title].length > LONGEST_TITLE) return tooLong("title", LONGEST_TITLE);
  if ([...(wanted.body ?? "")].length > LONGEST_BODY) return tooLong("body", LONGEST_BODY);
  if (held.pulls.some((pull) => pull.head === wanted.head && pull.base === wanted.base && pull.state === "open")) {
    return invalid({ code: "custom", message: `A pull request already exists for acme:${wanted.head}.` });
  }
  const { title, body = "", draft = false } = wanted;
  const number = held.pulls.length + 1;
  const pull: FakePull = { title, body, draft, head: wanted.head, base: wanted.base, number, state: "open" };
  held.pulls.push(pull);
  return { status: 201, answer: shown(pull, held) };
}

/** What is wrong with the keys of a request, in the words of its schema. */
function malformation(wanted: object): string | undefined {
  const fields = Object.entries(wanted) as [string, unknown][];
  const unknown = fields.find(([key]) => KEYS[key] === undefined)?.[0];
  if (unknown !== undefined) return `"${unknown}" is not a permitted key.`;
  const missing = ["base", "head", "title"].filter((key) => !Object.hasOwn(wanted, key)).map((key) => `"${key}"`);
  if (missing.length > 0) return `${missing.join(", ")} ${missing.length > 1 ? "weren't" : "wasn't"} supplied.`;
  const odd = fields.find(([key, value]) => typeof value !== KEYS[key] && value !== null);
  if (odd !== undefined) return `For 'properties/${odd[0]}', ${JSON.stringify(odd[1])} is not a ${KEYS[odd[0]]}.`;
  return /\S/.test(String((wanted as FakePull).title)) ? undefined : "title can't be blank";
}

function shown({ head, base, ...pull }: FakePull, { server, remote }: Held): unknown {
  const side = (ref: string): object => ({
    ...{ label: `acme:${ref}`, ref, sha: resolve(remote, `refs/heads/${ref}`) },
    repo: { full_name: "acme/widgets" },
  });
  const html_url = `${server.origin}/acme/widgets/pull/${pull.number}`;
  return { ...pull, head: side(head), base: side(base), html_url };
}

function resolve(
  remote: string,
  name: string,
  verb: "rev-parse" | "rev-list" | "show-ref" = "rev-parse",
): string | undefined {
  const options = { "rev-parse": ["--verify", "--quiet"], "rev-list": [], "show-ref": ["--verify", "--hash"] };
  try {
    const args = [verb, ...options[verb], name];
    return execFileSync("git", args, { cwd: remote, stdio: ["ignore", "pipe", "ignore"] })
      .toString()
      .trim();
  } catch {
    return undefined;
  }
}

async function readAll(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString();
}

/** Ends a request without an answer, as a server that dies does. */
export function hangUp(_request: IncomingMessage, response: ServerResponse): boolean {
  response.destroy();
  return true;
}
