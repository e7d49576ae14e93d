import { execFile } from "node:child_process";
import { SandboxError } from "../../../contracts/errors.js";
import { trustedPath } from "../../sandbox/host.js";
import type { GitHubRepo } from "../../util/git/github.js";
import { toInertLine } from "../../util/inert-text.js";
import { redact, truncate } from "../../util/sanitize.js";
import { type GitHubClient, type PullRequest, parseAnswer, toPullRequest } from "./github-client.js";
import type { GitHubHost } from "./github-host.js";

const TIMEOUT = 60_000;
const MAX_ANSWER = 4 * 1024 * 1024;
const MAX_REASON = 1_000;
const PASSED_ON = ["HOME", "XDG_CONFIG_HOME", "GH_CONFIG_DIR", "HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY"];

/** Asks GitHub by its own program `gh`, found in PATH. The token is in its environment and nowhere else. */
export function createGhClient({ serverUrl }: GitHubHost, { owner, name }: GitHubRepo, token: string): GitHubClient {
  const { host } = new URL(serverUrl);
  const repo = `${host}/${owner}/${name}`;
  const gh = (args: readonly string[], input = ""): Promise<string> => runGh(args, { host, token, input });
  const list = async (head: string): Promise<PullRequest | undefined> => {
    // It looks for the name of the branch only, and a stranger's fork may have one of that name.
    const fields = ["--json", "url,number,isDraft,isCrossRepository", "--limit", "100"];
    const found = parseAnswer(
      "gh",
      await gh(["pr", "list", "--repo", repo, "--head", head, "--state", "open", ...fields]),
    );
    const all = Array.isArray(found) ? (found as (Readonly<Record<string, unknown>> | null)[]) : [];
    const own = all.find((each) => each?.["isCrossRepository"] === false);
    return own ? toPullRequest("gh", own["url"], own["number"], own["isDraft"]) : undefined;
  };
  return {
    async defaultBranch() {
      const query = ["--jq", ".default_branch"];
      const branch = (await gh(["api", "--hostname", host, `repos/${owner}/${name}`, ...query])).trim();
      if (branch !== "") return branch;
      throw new SandboxError("unavailable", `gh does not name the default branch of ${owner}/${name}`);
    },
    findPullRequest: list,
    async createPullRequest({ title, body, head, base, draft }) {
      const texts = ["--title", title, "--body-file", "-", ...(draft ? ["--draft"] : [])];
      await gh(["pr", "create", "--repo", repo, "--head", head, "--base", base, ...texts], body);
      const made = await list(head);
      if (made !== undefined) return made;
      throw new SandboxError("unavailable", "gh opened a pull request and cannot find it");
    },
    async treeOfBranch(branch) {
      // A tag may have the same name.
      const path = `repos/${owner}/${name}/commits/${encodeURIComponent(`heads/${branch}`)}`;
      const tree = (await gh(["api", "--hostname", host, path, "--jq", ".commit.tree.sha"])).trim();
      return /^[0-9a-f]{40,64}$/.test(tree) ? tree : undefined;
    },
  };
}

/** Refuses a machine that has no `gh`, before anything is made. */
export async function assertGh(): Promise<void> {
  await runGh(["--version"], { host: "github.com", token: "", input: "" });
}

async function runGh(
  args: readonly string[],
  { host, token, input }: { host: string; token: string; input: string },
): Promise<string> {
  const passed = PASSED_ON.flatMap((key) => (process.env[key] === undefined ? [] : [[key, process.env[key]]]));
  const env = {
    ...(Object.fromEntries(passed) as Record<string, string>),
    PATH: trustedPath(),
    GH_HOST: host,
    // It reads the first for github.com and the second for every other host.
    ...(token !== "" && { GH_TOKEN: token, GH_ENTERPRISE_TOKEN: token }),
    ...{ GH_PROMPT_DISABLED: "1", GH_NO_UPDATE_NOTIFIER: "1", NO_COLOR: "1", LC_ALL: "C" },
  };
  return await new Promise((resolve, reject) => {
    const options = { cwd: "/", env, timeout: TIMEOUT, maxBuffer: MAX_ANSWER, encoding: "utf8" as const };
    const child = execFile("gh", args, options, (error, stdout, stderr) => {
      if (error === null) return resolve(stdout);
      if ((error as NodeJS.ErrnoException).code === "ENOENT") {
        const hint = "install it from https://cli.github.com, or leave --pr-with out";
        return reject(new SandboxError("missing_dependency", "gh was not found in PATH", { hint }));
      }
      const said = redact(stderr.trim() || error.message, { secrets: token === "" ? [] : [token] });
      reject(new SandboxError("unavailable", `gh: ${truncate(toInertLine(said), MAX_REASON)}`, { operation: "gh" }));
    });
    child.stdin?.on("error", () => undefined).end(input);
  });
}
