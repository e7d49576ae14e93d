import { randomUUID } from "node:crypto";
import { SandboxError } from "../../contracts/errors.js";
import type { OpenOptions } from "../sandbox.js";
import { openSandbox } from "../sandbox.js";
import type { AnswerStyle } from "./answer.js";
import { ToolCalls } from "./calls.js";
import { instructionsFor } from "./instructions.js";
import { MAX_RUNS } from "./limits.js";
import { networkOf, withServerDefaults } from "./open-options.js";
import { type CheckedOptions, checkOptions, type McpServerOptions } from "./options.js";
import type { ProtocolSetting } from "./protocol.js";
import { OwnedRuns } from "./runs.js";
import { OwnedSandboxes } from "./sandboxes.js";
import { createTools } from "./tools.js";
import type { McpTransport } from "./transport.js";

export type { McpMessage, McpTransport } from "./transport.js";

/** One client that is being served. */
export interface McpConnection {
  /** Resolves when the client is gone and its sandboxes are closed. */
  readonly closed: Promise<void>;
  /** Ends the connection, and closes its sandboxes. */
  close(): Promise<void>;
}

/** A server that gives sandboxes to models by the Model Context Protocol, in both of its eras. */
export interface McpServer extends AsyncDisposable {
  /** Serves one client over a transport, such as those of the official packages. Its sandboxes end with the connection. */
  connect(transport: McpTransport): McpConnection;
  /**
   * Answers one HTTP request. Sandboxes belong to `owner`, and no other owner can use them: give each client its own. Checks no token, host or origin;
   * `serveHttp` does.
   */
  fetch(request: Request, owner: string): Promise<Response>;
  /** Closes every sandbox and every connection. */
  close(): Promise<void>;
}

/** Makes a server. Nothing is opened before a model calls a tool. */
export async function createMcpServer(options: McpServerOptions = {}): Promise<McpServer> {
  const checked = checkOptions(options);
  const {
    multi = false,
    structured = false,
    ansi = false,
    maxCalls,
    maxSandboxes,
    maxOutput,
    sandbox: wanted,
  } = checked;
  const { open = openSandbox, onError = () => undefined } = checked;
  const hidden = { env: wanted.env ?? {}, secrets: checked.push === undefined ? [] : [checked.push.token] };
  const style: AnswerStyle = { maxOutput, ansi, hidden };
  const sandboxes = new OwnedSandboxes(async (more, signal) => {
    const asked: OpenOptions = { ...wanted, ...more };
    return await open({ ...(await withServerDefaults(asked)), signal });
  }, maxSandboxes);
  const runs = await createRuns(checked);
  const network = await networkOf(wanted);
  const tools = createTools({ options: checked, style, sandboxes, runs, network });
  const calls = new ToolCalls(tools, sandboxes, { multi, structured, maxCalls, style });
  const setting: ProtocolSetting = { calls, instructions: instructionsFor(checked, network), onError };
  // The package that speaks the protocol is large; only a server needs it.
  const { createHttpHandler, serveTransport } = await import("./protocol.js");
  const connections = new Set<McpConnection>();
  let handler: ReturnType<typeof createHttpHandler> | undefined;
  const close = async (): Promise<void> => {
    await Promise.all([...connections].map((each) => each.close()));
    await handler?.close();
    await Promise.all([sandboxes.close(), runs?.close()]);
  };
  return {
    connect(transport) {
      const owner = randomUUID();
      let isOver: () => void = () => undefined;
      const over = new Promise<void>((resolve) => {
        isOver = resolve;
      });
      const ending: McpTransport = watched(transport, () => isOver());
      const served = serveTransport(ending, owner, setting);
      const closed = over.then(async () => {
        await Promise.all([sandboxes.closeOf(owner), runs?.closeOf(owner)]);
        connections.delete(connection);
      });
      const connection: McpConnection = {
        closed,
        async close() {
          await served.close();
          isOver();
          await closed;
        },
      };
      connections.add(connection);
      return connection;
    },
    fetch(request, owner) {
      handler ??= createHttpHandler(setting);
      return handler.fetch(request, owner);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}

/** The runs of the server, if it has any. The harness is large; only these tools need it. */
async function createRuns({ runs: offer }: CheckedOptions): Promise<OwnedRuns | undefined> {
  if (offer === undefined) return undefined;
  const { listBlueprints } = await import("../harness.js");
  const known = [...new Set(listBlueprints({ repoDir: offer.repo }).map(({ name }) => name))];
  const { blueprints = known, maxRuns = MAX_RUNS } = offer;
  const unknown = blueprints.find((name) => !known.includes(name));
  if (unknown !== undefined) {
    throw new SandboxError("not_found", `There is no blueprint "${unknown}"`, {
      hint: `there are ${known.join(", ")}`,
    });
  }
  return new OwnedRuns({ ...offer, blueprints, maxRuns });
}

/** The same transport, with a call when it is closed: the protocol takes `onclose` for itself. */
function watched(transport: McpTransport, onClosed: () => void): McpTransport {
  let taken: (() => void) | undefined;
  const outer: McpTransport = {
    get onmessage() {
      return transport.onmessage;
    },
    set onmessage(handler) {
      transport.onmessage = handler;
    },
    get onerror() {
      return transport.onerror;
    },
    set onerror(handler) {
      transport.onerror = handler;
    },
    get onclose() {
      return taken;
    },
    set onclose(handler) {
      taken = handler;
    },
    start: () => transport.start(),
    send: (message) => transport.send(message),
    close: () => transport.close(),
  };
  transport.onclose = () => {
    taken?.();
    onClosed();
  };
  return outer;
}
