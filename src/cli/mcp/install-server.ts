import { join } from "node:path";
import { packageRoot } from "../../util/own-version.js";
import { isSecretName } from "../../util/secret-forms.js";
import { findCommand, parseWord, UsageError } from "../commands.js";
import type { Flags, Invocation } from "../invocation.js";

/** Flags of `mcp` that are not part of what the client runs. */
const NOT_PASSED: ReadonlySet<string> = new Set(["client", "scope", "as", "remove", "print", "json", "help"]);
const OF_HTTP = ["http", "host", "token-file", "allow-host", "allow-origin", "rate"] as const;

/** `glovebox mcp install`: writes this server into the configuration of a client, or takes it out again. */
export async function installServer({ flags, screen }: Invocation): Promise<number> {
  const { CLIENTS, installClient, removeClient } = await import("../../mcp.js");
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
  };
  const entry = {
    command: process.execPath,
    args: [join(packageRoot(), "dist", "src", "cli.js"), "mcp", ...passedOn(flags)],
  };
  if (flags.has("print")) {
    await screen.printJson(entry);
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
      if (name === "env") assertNoSecret(text);
      return text === "" ? `--${name}` : `--${name}=${text}`;
    });
  });
}

/** A value of `--env` would be in the client's file for good. */
function assertNoSecret(text: string): void {
  const [key = "", ...value] = text.split("=");
  if (value.length === 0 || !isSecretName(key)) return;
  throw new UsageError(
    `--env ${key}=… looks like a secret, and would be written to the client's configuration`,
    `write --env ${key}, which passes the variable of the client's environment, or --secret ${key}=<host>`,
  );
}
