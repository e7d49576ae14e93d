import { execFileSync } from "node:child_process";
import { mkdirSync } from "node:fs";
import type { IncomingMessage, ServerResponse } from "node:http";
import { join } from "node:path";
import { type GitServer, serveGit, type Trick } from "../support/git-server.js";
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
  refuse: ((method: string, path: string, body: string) => { status: number; message: string } | undefined) | undefined;
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
      const { status, answer } = respond(request, body, state.refuse, { pulls, remote, defaultBranch, server });
      response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify(answer));
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

function respond(
  request: IncomingMessage,
  body: string,
  refuse: FakeGitHub["refuse"],
  held: Held,
): { status: number; answer: unknown } {
  const { method = "", url = "" } = request;
  const { pathname, searchParams } = new URL(url, "http://localhost");
  if (request.headers.authorization !== `Bearer ${TOKEN}`) {
    return { status: 401, answer: { message: "Bad credentials" } };
  }
  const refused = refuse?.(method, pathname, body);
  if (refused !== undefined) return { status: refused.status, answer: { message: refused.message } };
  if (method === "GET" && pathname === REPOSITORY) {
    return { status: 200, answer: { default_branch: held.defaultBranch, full_name: "acme/widgets" } };
  }
  if (method === "GET" && pathname === `${REPOSITORY}/pulls`) {
    const [owner, branch] = (searchParams.get("head") ?? "").split(/:(.*)/s);
    const found = held.pulls.filter(({ head, state }) => owner === "acme" && head === branch && state === "open");
    return { status: 200, answer: found.map((pull) => shown(pull, held)) };
  }
  if (method === "GET" && pathname.startsWith(`${REPOSITORY}/commits/`)) {
    const branch = decodeURIComponent(pathname.slice(`${REPOSITORY}/commits/`.length));
    const tree = resolve(held.remote, `refs/heads/${branch}^{tree}`);
    if (tree === undefined) return { status: 422, answer: { message: `No commit found for SHA: ${branch}` } };
    return { status: 200, answer: { commit: { tree: { sha: tree } } } };
  }
  if (method === "POST" && pathname === `${REPOSITORY}/pulls`) return create(JSON.parse(body) as FakePull, held);
  return { status: 404, answer: { message: "Not Found" } };
}

function create(wanted: FakePull, held: Held): { status: number; answer: unknown } {
  const invalid = (message: string): { status: number; answer: unknown } => ({
    status: 422,
    answer: { message: "Validation Failed", errors: [{ resource: "PullRequest", code: "custom", message }] },
  });
  const [head, base] = [resolve(held.remote, `refs/heads/${wanted.head}`), resolve(held.remote, wanted.base)];
  if (head === undefined) return invalid("head is invalid");
  if (base === undefined) return invalid("base is invalid");
  if (head === base) return invalid(`No commits between ${wanted.base} and ${wanted.head}`);
  if ([...wanted.title].length > 256) return invalid("title is too long (maximum is 256 characters)");
  if (held.pulls.some((pull) => pull.head === wanted.head && pull.state === "open")) {
    return invalid(`A pull request already exists for acme:${wanted.head}.`);
  }
  const pull: FakePull = { ...wanted, number: held.pulls.length + 1, state: "open" };
  held.pulls.push(pull);
  return { status: 201, answer: shown(pull, held) };
}

function shown(pull: FakePull, { server }: Held): unknown {
  return { ...pull, html_url: `${server.origin}/acme/widgets/pull/${pull.number}` };
}

function resolve(remote: string, name: string): string | undefined {
  try {
    const args = ["rev-parse", "--verify", "--quiet", name];
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
