/** A repository on github.com. */
export interface GitHubRepo {
  owner: string;
  name: string;
}

const URL_FORM = /^https:\/\/github\.com\/([^/]+)\/([^/]+)\/?$/i;
const SHORT_FORM = /^([^/]+)\/([^/]+)$/;
const OWNER = /^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$/;
const NAME = /^[A-Za-z0-9._][A-Za-z0-9._-]{0,99}$/;

/** Reads `owner/name` or `https://github.com/owner/name[.git]`; anything else throws and names the value. */
export function parseGitHubRepo(repo: string): GitHubRepo {
  if (typeof repo !== "string") throw new TypeError(`repo must be a string, got ${typeof repo}`);
  const match = URL_FORM.exec(repo) ?? SHORT_FORM.exec(repo);
  const owner = match?.[1] ?? "";
  const name = (match?.[2] ?? "").replace(/\.git$/i, "");
  if (!OWNER.test(owner) || !NAME.test(name) || /^\.{1,2}$|\.git$/i.test(name)) {
    throw new TypeError(
      `not a GitHub repository: ${JSON.stringify(withoutUserinfo(repo))}; expected owner/name or https://github.com/owner/name`,
    );
  }
  return { owner, name };
}

function withoutUserinfo(repo: string): string {
  return repo.replace(/\/\/.*@/s, "//***@");
}
