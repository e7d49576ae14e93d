import { SandboxError } from "../../../../contracts/errors.js";
import { isBranchName } from "../../../util/git/branch-name.js";
import type { Source } from "./options.js";

const TIMEOUT = 30_000;
const MAX_ANSWER = 1 << 20;

/** Asks GitHub for the default branch of a repository. */
export async function askDefaultBranch({ owner, name }: Source, token: string | undefined): Promise<string> {
  const api = (process.env["GITHUB_API_URL"] || "https://api.github.com").replace(/\/+$/, "");
  const url = `${api}/repos/${owner}/${name}`;
  const headers: Record<string, string> = { Accept: "application/vnd.github+json", "User-Agent": "glovebox" };
  if (token !== undefined) headers["Authorization"] = `Bearer ${token}`;
  const response = await fetch(url, { headers, redirect: "manual", signal: AbortSignal.timeout(TIMEOUT) }).catch(
    (cause: unknown) => {
      throw new SandboxError("unavailable", `GitHub did not answer for ${owner}/${name}`, { cause });
    },
  );
  if (!response.ok) {
    const code = response.status === 401 ? "unauthenticated" : response.status === 404 ? "not_found" : "unavailable";
    throw new SandboxError(code, `GitHub answered ${response.status} for ${owner}/${name}`, {
      hint: "check GITHUB_TOKEN and the name of the repository",
    });
  }
  const branch = defaultBranchIn((await response.text()).slice(0, MAX_ANSWER));
  if (isBranchName(branch)) return branch;
  throw new SandboxError("unavailable", `GitHub names no default branch for ${owner}/${name}`);
}

/** The default branch in an answer, if it comes from GitHub and not from something in between. */
function defaultBranchIn(text: string): unknown {
  try {
    return (JSON.parse(text) as { default_branch?: unknown } | null)?.default_branch;
  } catch {
    return undefined;
  }
}
