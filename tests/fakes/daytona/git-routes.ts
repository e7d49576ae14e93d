import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { promisify } from "node:util";
import type { Habits } from "./habits.js";
import type { Machine } from "./machine.js";
import { type Exchange, json, objectOf, Refusal, textOf } from "./reply.js";

const run = promisify(execFile);
const MAX_OUTPUT = 64 << 20;

/** Git of one sandbox, as the daemon's own library does it: no hooks, credentials for one call only. */
export async function handleGit(machine: Machine, habits: Habits, exchange: Exchange): Promise<boolean> {
  const { method, path, query, request, response } = exchange;
  const body = method === "GET" ? {} : await objectOf(request);
  const place = machine.hostPath(query.get("path") ?? textOf(body, "path"));
  const text = (name: string): string => textOf(body, name);
  switch (`${method} ${path}`) {
    case "POST /git/clone":
      await clone(machine, place, body);
      json(response, 200);
      return true;
    case "GET /git/status":
      json(response, 200, await status(place));
      return true;
    case "GET /git/branches":
      json(response, 200, {
        branches: (await git(place, "for-each-ref", "--format=%(refname:short)", "refs/heads")).split("\n"),
      });
      return true;
    case "POST /git/branches":
      await git(place, "branch", text("name")).catch(() => {
        throw new Refusal(500, `a branch named "${text("name")}" already exists`, "GIT_BRANCH_EXISTS");
      });
      await moveHead(place, text("name"), habits);
      json(response, 201);
      return true;
    case "POST /git/checkout":
      await moveHead(place, text("branch"), habits);
      json(response, 200);
      return true;
    case "POST /git/add":
      if (!Array.isArray(body["files"]) || body["files"].length === 0) throw new Refusal(400, "files is required");
      await git(place, "add", "-A", "--", ...(body["files"] as string[])).catch(() => {
        throw new Refusal(500, "entry not found");
      });
      json(response, 200);
      return true;
    case "POST /git/commit": {
      const staged = await git(place, "diff", "--cached", "--name-only");
      if (staged === "" && (habits.refuseEmptyCommits || body["allow_empty"] !== true)) {
        throw new Refusal(500, "cannot create empty commit: clean working tree");
      }
      const who = ["-c", `user.name=${text("author")}`, "-c", `user.email=${text("email")}`];
      await git(place, ...who, "commit", "--quiet", "--allow-empty", "-m", text("message"));
      json(response, 200, { hash: await git(place, "rev-parse", "HEAD") });
      return true;
    }
    case "POST /git/push":
      await push(machine, place, body);
      json(response, 200);
      return true;
    default:
      return false;
  }
}

async function clone(machine: Machine, place: string, body: Record<string, unknown>): Promise<void> {
  if (existsSync(place) && readdirSync(place).length > 0) throw new Refusal(409, "repository already exists");
  const branch = body["branch"] === undefined ? [] : ["--branch", textOf(body, "branch")];
  const depth = body["depth"] === undefined ? [] : ["--depth", String(body["depth"])];
  const args = ["clone", "--quiet", "--single-branch", ...branch, ...depth, textOf(body, "url"), place];
  reach(machine, textOf(body, "url"));
  await overNetwork(machine.hostPath("."), args, body);
}

async function push(machine: Machine, place: string, body: Record<string, unknown>): Promise<void> {
  const head = await git(place, "symbolic-ref", "HEAD").catch(() => {
    throw new Refusal(500, "funny refname: HEAD");
  });
  reach(machine, await git(place, "remote", "get-url", "origin"));
  await overNetwork(place, ["push", "--quiet", "origin", `${head}:${head}`], body);
}

function reach(machine: Machine, url: string): void {
  if (!machine.reaches(new URL(url).hostname)) {
    throw new Refusal(500, "dial tcp: no route to host", "GIT_TRANSPORT_FAILED");
  }
}

async function overNetwork(cwd: string, args: string[], body: Record<string, unknown>): Promise<void> {
  const { username, password } = body;
  const pair = Buffer.from(`${String(username)}:${String(password)}`).toString("base64");
  const env: Record<string, string> =
    password === undefined
      ? {}
      : {
          GIT_CONFIG_COUNT: "1",
          GIT_CONFIG_KEY_0: "http.extraHeader",
          GIT_CONFIG_VALUE_0: `Authorization: Basic ${pair}`,
        };
  try {
    await git(cwd, { env }, ...args);
  } catch (error) {
    throw refusalOf(String((error as { stderr?: string }).stderr ?? error));
  }
}

function refusalOf(said: string): Refusal {
  if (/error: 401|Authentication failed|could not read Username/i.test(said)) {
    return new Refusal(401, "authentication required", "GIT_AUTH_FAILED");
  }
  if (/not found|error: 404/i.test(said)) return new Refusal(404, "repository not found", "GIT_REPO_NOT_FOUND");
  if (/rejected|non-fast-forward/i.test(said)) return new Refusal(500, `non-fast-forward update: ${said}`);
  return new Refusal(500, said);
}

/** On a dirty tree the answer is no, and yet HEAD has moved. */
async function moveHead(place: string, branch: string, { movesHeadWhenDirty }: Habits): Promise<void> {
  await git(place, "rev-parse", "--verify", "--quiet", `refs/heads/${branch}`).catch(() => {
    throw new Refusal(404, `branch ${branch} not found`, "GIT_BRANCH_NOT_FOUND");
  });
  const dirty = (await git(place, "status", "--porcelain")) !== "";
  if (!dirty || movesHeadWhenDirty) await git(place, "symbolic-ref", "HEAD", `refs/heads/${branch}`);
  if (dirty) throw new Refusal(409, "worktree contains unstaged changes", "GIT_DIRTY_WORKTREE");
  await git(place, "reset", "--hard", "--quiet");
}

/** Nothing here tells whether a branch was pushed. */
async function status(place: string): Promise<Record<string, unknown>> {
  const words: Record<string, string> = {
    " ": "Unmodified",
    "?": "Untracked",
    M: "Modified",
    A: "Added",
    D: "Deleted",
    R: "Renamed",
  };
  const lines = (await git(place, "status", "--porcelain", "-z", "--untracked-files=all")).split("\0").filter(Boolean);
  const fileStatus = lines.map((line) => ({
    name: line.slice(3),
    extra: "",
    staging: words[line[0] ?? " "] ?? "Unmodified",
    worktree: words[line[1] ?? " "] ?? "Unmodified",
  }));
  const currentBranch = await git(place, "symbolic-ref", "--short", "HEAD").catch(() => "HEAD");
  return { currentBranch, fileStatus, branchPublished: false, ahead: 0, behind: 0 };
}

async function git(cwd: string, ...words: (string | { env: Record<string, string> })[]): Promise<string> {
  const args = words.filter((word) => typeof word === "string");
  const extra = words.find((word) => typeof word !== "string")?.env;
  const env = {
    PATH: process.env["PATH"] ?? "",
    HOME: "/nonexistent",
    GIT_CONFIG_NOSYSTEM: "1",
    GIT_TERMINAL_PROMPT: "0",
    LC_ALL: "C",
    ...extra,
  };
  const { stdout } = await run("git", ["-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", ...args], {
    cwd,
    env,
    maxBuffer: MAX_OUTPUT,
  });
  return stdout.replace(/\n$/, "");
}
