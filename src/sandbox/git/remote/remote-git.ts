import { redact, truncate } from "../../../util/sanitize.js";
import { type HostGitOptions, type HostGitResult, NO_CONFIG, runHostGit } from "../host.js";

const MAX_COMPLAINT = 2_000;
/** The user's proxy settings. A proxy only sees a tunnel, not the token. */
const NETWORK_ENV = ["HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy", "SSL_CERT_FILE", "SSL_CERT_DIR"];

const CONFIG: Readonly<Record<string, string>> = {
  "credential.helper": "",
  "http.followRedirects": "false",
  "http.sslVerify": "true",
  "http.lowSpeedLimit": "1000",
  "http.lowSpeedTime": "60",
  "push.recurseSubmodules": "no",
  "push.gpgSign": "false",
  "protocol.version": "2",
};

/** Runs git against a remote, from a git directory of ours, without anybody's settings. */
export async function runRemoteGit(
  args: readonly string[],
  { protocol }: { readonly protocol: "https" | "http" | "ssh" | "file" },
  store: HostGitOptions,
  asking: Pick<HostGitOptions, "extraFile" | "env">,
): Promise<HostGitResult> {
  const names = protocol === "https" ? NETWORK_ENV : [];
  const way = names.map((name) => [name, process.env[name]]).filter(([, value]) => value !== undefined);
  // Nobody can answer what ssh would ask.
  const ssh = protocol === "ssh" ? { GIT_SSH_COMMAND: "ssh -oBatchMode=yes" } : {};
  const env = { ...NO_CONFIG, ...Object.fromEntries(way), ...ssh, ...asking.env, GIT_ALLOW_PROTOCOL: protocol };
  return await runHostGit(args, { ...store, ...asking, config: CONFIG, env, interruptible: true });
}

/** What went wrong at the remote, safe to show: without the token, without control characters, not too long. */
export function complaintOf({ stderr, stdout, exitCode }: HostGitResult, token: string): string {
  const secrets = token === "" ? [] : [token, Buffer.from(`x-access-token:${token}`).toString("base64")];
  const lines = `${stdout}\n${stderr}`.split("\n").filter((line) => /^(!|error:|fatal:|remote:)/.test(line));
  const text = lines.join("\n") || stderr.trim() || `git ended with ${exitCode}`;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: a remote's words may hold what a terminal would obey
  return truncate(redact(text, { secrets }).replace(/[\x00-\x08\x0b-\x1f\x7f-\x9f]/g, "?"), MAX_COMPLAINT);
}
