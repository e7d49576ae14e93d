import { toSandboxError } from "../../../contracts/errors.js";
import type { Sandbox } from "../../sandbox/types.js";
import { toInertLine } from "../../util/inert-text.js";
import { type RedactOptions, redact } from "../../util/redact.js";
import type { PrWith, PushResult, RunReport } from "../types.js";
import { createGhClient } from "./gh-client.js";
import { createGitHubClient, type GitHubClient } from "./github-client.js";
import { type GitHubHost, repositoryAt } from "./github-host.js";
import { commitMessageOf, pullRequestBody, pullRequestTitle } from "./pull-request-text.js";

/** What a push needs. */
export interface PullRequestOptions {
  readonly sandbox: Sandbox;
  readonly report: RunReport;
  readonly branch: string;
  readonly githubToken: string | undefined;
  readonly host: GitHubHost;
  /** Where the repository comes from: `owner/name` or the URL of its remote. */
  readonly remote: string | undefined;
  /** Branch that the pull request is for. Default: that of the repository. */
  readonly base?: string | undefined;
  readonly draft: boolean;
  readonly prWith?: PrWith | undefined;
  readonly hidden?: RedactOptions | undefined;
}

/** Pushes the branch of a run and opens a pull request. Everything that can go wrong is a result. */
export async function pushAndCreatePR(opts: PullRequestOptions): Promise<PushResult> {
  const { githubToken: token, report } = opts;
  if (token === undefined || token === "") {
    return { pushed: false, error: "GITHUB_TOKEN required for push", state: "no_token" };
  }
  if (report.changes !== undefined && report.changes.files.length === 0) return { pushed: false, state: "no_changes" };
  const refused = await push(opts, token);
  if (refused !== undefined) {
    return { pushed: false, error: `git push failed: ${shown(refused, token)}`, state: "push_failed" };
  }
  const done = { pushed: true, ...(report.tree !== undefined && { tree: report.tree }) };
  try {
    return { ...done, ...(await openPullRequest(opts, token)), state: "ok" };
  } catch (error) {
    const reason = shown(toSandboxError(error).message, token);
    return { ...done, error: `PR creation failed: ${reason}`, state: "pr_failed" };
  }
}

/** What the remote has against the push; undefined when it took it. */
async function push(opts: PullRequestOptions, token: string): Promise<string | undefined> {
  const { sandbox, branch, report, hidden, host } = opts;
  if (!sandbox.capabilities.git) return `the ${sandbox.backend} backend cannot push`;
  try {
    const { pushed, error } = await sandbox.pushBranch(branch, token, {
      message: redact(commitMessageOf(withoutSecrets(report, hidden)), hidden),
      server: host.serverUrl,
    });
    return pushed ? undefined : (error ?? "the remote gave no reason");
  } catch (error) {
    return toSandboxError(error).message;
  }
}

async function openPullRequest(opts: PullRequestOptions, token: string): Promise<Partial<PushResult>> {
  const { host, remote, report, branch, draft } = opts;
  const repository = remote === undefined ? undefined : repositoryAt(host, remote);
  if (repository === undefined) throw new Error(`the remote is not a repository on ${host.serverUrl}`);
  const createClient = opts.prWith === "gh" ? createGhClient : createGitHubClient;
  const github = createClient(host, repository, token);
  await checkTree(github, branch, report.tree);
  const existing = await github.findPullRequest(branch);
  if (existing !== undefined) return { prUrl: existing.url, draft: existing.draft, existing: true };
  const base = opts.base ?? (await github.defaultBranch());
  const hidden = { ...opts.hidden, secrets: [...(opts.hidden?.secrets ?? []), token] };
  const clean = withoutSecrets(report, hidden);
  const title = pullRequestTitle(clean.intent);
  const body = redact(pullRequestBody(clean), hidden);
  const request = { title, body, head: branch, base, draft };
  const made = await github.createPullRequest(request);
  return { prUrl: made.url, draft: made.draft };
}

/** Before the intent is written in another way, in which a secret would no longer be found. */
export function withoutSecrets(report: RunReport, hidden: RedactOptions | undefined): RunReport {
  return { ...report, intent: redact(report.intent, hidden) };
}

/** What nobody has looked at is not proposed to anybody. */
async function checkTree(github: GitHubClient, branch: string, reviewed: string | undefined): Promise<void> {
  if (reviewed === undefined) return;
  const tree = await github.treeOfBranch(branch);
  if (tree === reviewed) return;
  throw new Error(`${branch} at the remote has the tree ${tree ?? "unknown"}, and ${reviewed} was reviewed`);
}

function shown(reason: string, token: string): string {
  return toInertLine(redact(reason, { secrets: [token] })).replaceAll("\\n", "; ");
}
