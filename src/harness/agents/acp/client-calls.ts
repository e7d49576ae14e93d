import { SandboxError } from "../../../../contracts/errors.js";
import type { AgentHost } from "../../types.js";
import { asCount, asRecords, asText, type Untrusted } from "../json-line.js";
import { RPC_CODES, RpcError } from "./rpc.js";
import { Terminals } from "./terminals.js";

/** The largest file that is read for an agent; it can read larger ones itself. */
const LARGEST_FILE = 4 * 1024 * 1024;

/** Requests that an agent may have open at once. */
const MOST_OPEN = 64;

/**
 * What an agent may ask of its client. It is in the sandbox and hostile, so its files are the sandbox's files, and its
 * terminals the sandbox's processes.
 */
export class ClientCalls {
  readonly #host: AgentHost;
  readonly #terminals: Terminals;
  #open = 0;
  #isCancelled = false;

  constructor(host: AgentHost) {
    this.#host = host;
    this.#terminals = new Terminals(host);
  }

  /** Answers a request. Rejects with an `RpcError` only. */
  async answer(method: string, params: Untrusted): Promise<object> {
    if (this.#open >= MOST_OPEN) throw new RpcError(RPC_CODES.internal, `${MOST_OPEN} requests are open already`);
    this.#open += 1;
    try {
      return await this.#run(method, params);
    } catch (error) {
      if (error instanceof RpcError) throw error;
      const known = error instanceof SandboxError;
      const code = known && error.code === "not_found" ? RPC_CODES.notFound : RPC_CODES.internal;
      throw new RpcError(code, known ? `${error.code}: ${error.message}` : "it failed");
    } finally {
      this.#open -= 1;
    }
  }

  /** From now on no permission is given. */
  cancel(): void {
    this.#isCancelled = true;
  }

  /** Ends the terminals. */
  async close(): Promise<void> {
    await this.#terminals.close();
  }

  async #run(method: string, params: Untrusted): Promise<object> {
    switch (method) {
      case "fs/read_text_file":
        return { content: await this.#read(params) };
      case "fs/write_text_file":
        return await this.#write(params);
      case "terminal/create":
        return await this.#terminals.create(params);
      case "terminal/output":
        return this.#terminals.output(params);
      case "terminal/wait_for_exit":
        return await this.#terminals.waitForExit(params);
      case "terminal/kill":
        return await this.#terminals.kill(params);
      case "terminal/release":
        return await this.#terminals.release(params);
      case "session/request_permission":
        return { outcome: this.#permit(params) };
      default:
        throw new RpcError(RPC_CODES.unknownMethod, `there is no method ${method}`);
    }
  }

  async #read(params: Untrusted): Promise<string> {
    const path = pathOf(params);
    const { sandbox } = this.#host;
    const stat = await sandbox.stat(path, { follow: true });
    if (stat !== null && stat.size > LARGEST_FILE) {
      throw new RpcError(RPC_CODES.internal, `${path} has ${stat.size} bytes; at most ${LARGEST_FILE} are read`);
    }
    const content = stat === null ? null : await sandbox.readFile(path);
    // The words of the protocol's SDK: Gemini CLI looks for them, and not at the code.
    if (content === null) throw new RpcError(RPC_CODES.notFound, `Resource not found: ${path}`);
    const [line, limit] = [asCount(params["line"]), asCount(params["limit"])];
    if (line === undefined && limit === undefined) return content;
    const start = Math.max(0, (line ?? 1) - 1);
    return content
      .split(/(?<=\n)/)
      .slice(start, limit === undefined ? undefined : start + limit)
      .join("");
  }

  async #write(params: Untrusted): Promise<object> {
    const content = params["content"];
    if (typeof content !== "string") throw new RpcError(RPC_CODES.invalidParams, "content must be a text");
    await this.#host.sandbox.writeFile(pathOf(params), content);
    return {};
  }

  /** Everything is allowed that an agent may ask for: the sandbox confines it. */
  #permit(params: Untrusted): object {
    const options = asRecords(params["options"]);
    const chosen = ["allow_once", "allow_always"]
      .map((kind) => options.find((option) => option["kind"] === kind))
      .find((option) => option !== undefined);
    const optionId = asText(chosen?.["optionId"]);
    return this.#isCancelled || optionId === undefined ? { outcome: "cancelled" } : { outcome: "selected", optionId };
  }
}

function pathOf(params: Untrusted): string {
  const path = asText(params["path"]);
  if (path?.startsWith("/") === true) return path;
  throw new RpcError(RPC_CODES.invalidParams, "path must be absolute");
}
