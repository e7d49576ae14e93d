import { join } from "node:path";
import { packageRoot } from "../../util/own-version.js";
import { redact } from "../../util/sanitize.js";
import { isSecretName } from "../../util/secret-forms.js";
import { findCommand, parseWord, UsageError } from "../commands.js";
import type { Flags, Invocation } from "../invocation.js";
import { serverOptions } from "./serve-clients.js";

/** Flags of `mcp` that are not part of what the client runs. */
const NOT_PASSED: ReadonlySet<string> = new Set([
  "client",
  "scope",
  "as",
  "remove",
  "print",
  "dry-run",
  "json",
  "help",
]);
const OF_HTTP = ["http", "host", "token-file", "allow-host", "allow-origin", "rate"] as const;

/** `glovebox mcp install`: writes this server into the configuration of a client, or takes it out again. */
export async function installServer(invocation: Invocation): Promise<number> {
  const { flags, screen } = invocation;
  const { CLIENTS, clientConfig, installClient, removeClient, TOOL_GROUPS } = await import("../../mcp.js");
  const given = flags.text("client");
  if (given === undefined) {
    throw new UsageError("mcp install needs --client <name>", `one of ${CLIENTS.join(", ")}`);
  }
  const client = parseWord("--client", given, CLIENTS);
  const overHttp = OF_HTTP.find((name) => flags.has(name));
  if (overHttp !== undefined) {
    throw new UsageError(
      `--${overHttp} does not go together with install`,
      "a client that is installed starts the server itself",
    );
  }
  const name = flags.text("as");
  const options = {
    client,
    scope: parseWord("--scope", flags.text("scope") ?? "user", ["user", "project"]),
    ...(name !== undefined && { name }),
    ...(flags.has("dry-run") && { dryRun: true }),
  };
  const entry = {
    command: process.execPath,
    args: [join(packageRoot(), "dist", "src", "cli.js"), "mcp", ...passedOn(flags)],
  };
  if (!flags.has("remove")) await assertServes(invocation, TOOL_GROUPS);
  if (flags.has("print")) {
    if (flags.has("json")) await screen.printJson(entry);
    else await screen.print(clientConfig(options, entry));
    return 0;
  }
  const report = flags.has("remove") ? await removeClient(options) : await installClient(options, entry);
  if (flags.has("json")) await screen.printJson(report);
  else if (!report.changed) await screen.printNote(`${report.file} is as it should be`);
  else await screen.print(`${report.file}\n`);
  if (entry.args[0]?.includes("_npx") === true && !flags.has("remove")) {
    await screen.printNote("this glovebox is in the cache of npx, which may be emptied: npm install -g glovebox");
  }
  return 0;
}

/** The flags of the server, as the client will give them. */
function passedOn(flags: Flags): string[] {
  return findCommand("mcp").flags.flatMap(({ name, value }) => {
    if (!flags.has(name) || NOT_PASSED.has(name)) return [];
    if (value === undefined) return [`--${name}`];
    return flags.texts(name).map((text) => {
      assertNoSecret(name, text);
      return text === "" ? `--${name}` : `--${name}=${text}`;
    });
  });
}

/** Refuses flags that the server would refuse when the client starts it. What only its environment has is not looked at. */
async function assertServes(invocation: Invocation, groups: Parameters<typeof serverOptions>[1]): Promise<void> {
  const { flags } = invocation;
  const isLater = (name: string): boolean => ["allow-push", "id", "snapshot"].includes(name);
  const given: Flags = {
    has: (name) => !isLater(name) && flags.has(name),
    text: (name) => (name === "network" && flags.text(name)?.includes("@") ? undefined : flags.text(name)),
    texts: (name) => flags.texts(name).filter((text) => name !== "env" || text.includes("=")),
  };
  await serverOptions({ ...invocation, flags: given }, groups).catch((error: unknown) => {
    if (error instanceof UsageError) throw error;
  });
}

/** What is written is in the client's file for good. */
function assertNoSecret(flag: string, text: string): void {
  const [key = "", ...value] = text.split("=");
  const written = "and would be written to the client's configuration";
  if (flag === "env" && value.length > 0 && isSecretName(key)) {
    throw new UsageError(
      `--env ${key}=… looks like a secret, ${written}`,
      `write --env ${key}, which passes the variable of the client's environment, or --secret ${key}=<host>`,
    );
  }
  const [first = ""] = value.join("=").split(",");
  if (flag === "secret" && value.length > 0 && !/[.:=]/.test(first)) {
    throw new UsageError(
      `--secret ${key}=… names no host; it may be the secret itself, ${written}`,
      `write --secret ${key}=<host>; the value is that of the variable ${key}`,
    );
  }
  if (/https?:\/\/[^/\s@]+@/i.test(text)) {
    throw new UsageError(
      `--${flag} holds a user name or password, ${written}`,
      "leave it out, and set GLOVEBOX_TOKEN where the client is started",
    );
  }
  if (redact(text) !== text) {
    throw new UsageError(
      `--${flag} holds the value of a secret variable, ${written}`,
      "name the variable: --env NAME, or --secret NAME=<host>",
    );
  }
}
