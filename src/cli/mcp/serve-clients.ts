import { SandboxError } from "../../../contracts/errors.js";
import type { HttpOptions, McpServer, McpServerOptions, SandboxOffers, ToolGroup } from "../../mcp.js";
import { parseCount, parseSize, parseWord, UsageError } from "../commands.js";
import { hereOf, withHere } from "../here.js";
import type { Flags, Invocation } from "../invocation.js";
import { openWithFiles } from "../open-with-files.js";
import { printPublished } from "../published-ports.js";
import { toOpenOptions } from "../sandbox-options.js";
import { findToken, TOKENS } from "../token.js";
import { readTokens } from "./read-tokens.js";
import { runOfferOf } from "./run-offer.js";

const OF_HTTP = ["host", "token-file", "allow-host", "allow-origin", "rate"] as const;
/** A client over HTTP may never say that it is gone. */
const IDLE_OVER_HTTP = 30 * 60_000;

/** Serves models until the client goes away, or until this program is ended. */
export async function serveClients(invocation: Invocation): Promise<number> {
  const { flags, screen, interruption } = invocation;
  const isHttp = flags.has("http");
  const stray = OF_HTTP.find((name) => flags.has(name));
  if (!isHttp && stray !== undefined) throw new UsageError(`--${stray} needs --http`, "for example --http 8931");
  if (!isHttp && flags.has("json"))
    throw new UsageError("--json needs --http or install", "stdout belongs to the client");
  const overHttp = isHttp ? { ...httpOptions(flags), tokens: await readTokens(flags, screen) } : undefined;
  const mcp = await import("../../mcp.js");
  const server = await mcp.createMcpServer(await serverOptions(invocation, mcp.TOOL_GROUPS));
  const unsubscribe = interruption.onEnd(() => void server.close());
  try {
    if (overHttp !== undefined) await serveOverHttp(invocation, server, overHttp);
    else await mcp.serveStdio(server).closed;
  } finally {
    unsubscribe();
    await server.close();
  }
  if (interruption.ending !== undefined) await screen.printNote("closed all sandboxes");
  return 0;
}

async function serveOverHttp(
  { flags, screen, interruption }: Invocation,
  server: McpServer,
  options: HttpOptions,
): Promise<void> {
  const { serveHttp } = await import("../../mcp.js");
  const http = await serveHttp(server, options);
  if (flags.has("json")) await screen.printJson({ url: http.url });
  else await screen.printNote(`serving ${http.url}`);
  await new Promise<void>((resolve) => interruption.onEnd(() => resolve()));
  await http.close();
}

/** What the flags ask for, as options of the server. */
export async function serverOptions(invocation: Invocation, groups: readonly ToolGroup[]): Promise<McpServerOptions> {
  const { flags, screen } = invocation;
  const here = hereOf(flags);
  const sandbox = withHere(await toOpenOptions(invocation), here);
  const isPushing = flags.has("allow-push");
  const tools = (flags.text("tools") ?? "")
    .split(",")
    .filter(Boolean)
    .map((word) => parseWord("--tools", word, groups));
  const { blueprints, ...offers } = offersOf(flags);
  const stray =
    ["max-time", "max-cost"].find((name) => flags.has(name)) ?? (blueprints.length > 0 ? "offer" : undefined);
  if (stray !== undefined && !tools.includes("runs")) {
    throw new UsageError(
      `--${stray}${stray === "offer" ? " blueprint=" : ""} needs --tools runs`,
      "add runs to --tools",
    );
  }
  return {
    sandbox: { ...(flags.has("http") && !flags.has("idle") && { idleTimeout: IDLE_OVER_HTTP }), ...sandbox },
    async open(options) {
      const opened = await openWithFiles(invocation, options, here);
      await printPublished(opened, screen);
      const reference = opened.name ?? opened.id;
      if (flags.has("keep"))
        await screen.printNote(`${reference} is kept; glovebox exec --id ${reference} -- … opens it again`);
      return opened;
    },
    tools: isPushing && !tools.includes("git") ? [...tools, "git"] : tools,
    multi: flags.has("multi"),
    ...offers,
    ...(tools.includes("runs") && { runs: await runOfferOf(flags, sandbox, blueprints) }),
    structured: flags.has("structured"),
    ansi: flags.has("ansi"),
    ...(flags.has("max-output") && { maxOutput: parseSize("--max-output", flags.text("max-output") ?? "") }),
    ...(flags.has("max-sandboxes") && {
      maxSandboxes: parseCount("--max-sandboxes", flags.text("max-sandboxes") ?? ""),
    }),
    ...(isPushing && { push: pushToken() }),
    onError: (error) => {
      if (process.env["GLOVEBOX_DEBUG"]) void screen.printNote(error.message);
    },
  };
}

function offersOf(flags: Flags): { offers?: SandboxOffers; blueprints: readonly string[] } {
  const offers = { backend: [] as string[], image: [] as string[], repo: [] as string[], blueprint: [] as string[] };
  for (const text of flags.texts("offer")) {
    const [, kind = "", value = ""] = /^(\w+)=(.+)$/s.exec(text) ?? [];
    if (!Object.hasOwn(offers, kind)) {
      throw new UsageError(
        `--offer takes backend=, image=, repo= or blueprint= and a value, not "${text}"`,
        "for example --offer image=node:22",
      );
    }
    offers[kind as keyof typeof offers].push(value);
  }
  const { backend: backends, image: images, repo: repos, blueprint: blueprints } = offers;
  const choices = {
    ...(backends.length > 0 && { backends }),
    ...(images.length > 0 && { images }),
    ...(repos.length > 0 && { repos }),
  };
  return { blueprints, ...(Object.keys(choices).length > 0 && { offers: choices }) };
}

function pushToken(): NonNullable<McpServerOptions["push"]> {
  const found = findToken(process.env);
  if (found !== undefined) return found;
  throw new SandboxError("unauthenticated", `No token found for --allow-push: none of ${TOKENS.join(", ")} is set`, {
    hint: "set one in the environment of the server",
  });
}

function httpOptions(flags: Flags): Omit<HttpOptions, "tokens"> {
  const text = flags.text("http") ?? "";
  const port = /^\d{1,5}$/.test(text) ? Number(text) : -1;
  if (port < 0 || port > 65_535)
    throw new UsageError(`--http takes a port from 0 to 65535, not "${text}"`, "for example --http 8931");
  const host = flags.text("host");
  return {
    port,
    ...(host !== undefined && { host }),
    ...(flags.has("allow-host") && { allowHosts: flags.texts("allow-host") }),
    ...(flags.has("allow-origin") && { allowOrigins: flags.texts("allow-origin") }),
    ...(flags.has("rate") && { rate: parseCount("--rate", flags.text("rate") ?? "") }),
  };
}
