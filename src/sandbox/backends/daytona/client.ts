import { createRequire } from "node:module";
import type { Daytona, Sandbox as RemoteSandbox } from "@daytona/sdk";
import { SandboxError } from "../../../../contracts/errors.js";
import { ownFile } from "../../../util/own-version.js";
import type { Account } from "./options.js";

export type { Daytona, RemoteSandbox };

/** A client, and how to close it. */
export interface Connection {
  readonly client: Daytona;
  /** Closes what keeps this process alive. A client that the caller passed in stays open. */
  close(): Promise<void>;
}

type Sdk = typeof import("@daytona/sdk");

/** Loads the SDK when it is first needed. */
export async function loadSdk(): Promise<Sdk> {
  try {
    return requireSdk() ?? (await import("@daytona/sdk"));
  } catch (cause) {
    throw new SandboxError("missing_dependency", "The Daytona backend needs the package @daytona/sdk", {
      cause,
      hint: "npm install @daytona/sdk",
    });
  }
}

/** The same code loads twice as fast as CommonJS. Undefined if it is not found this way, for example in a bundle. */
function requireSdk(): Sdk | undefined {
  try {
    return createRequire(ownFile())("@daytona/sdk") as Sdk;
  } catch {
    return undefined;
  }
}

/** Opens a client for an account. */
export async function connect(account: Account): Promise<Connection> {
  if (account.client !== undefined) return { client: account.client as Daytona, close: async () => undefined };
  const { Daytona: Client } = await loadSdk();
  const { apiKey, apiUrl, target } = account;
  // Polls: the event socket keeps a process alive for a minute if it can't connect.
  const client = new Client({ apiKey, apiUrl, target, useDeprecatedPolling: true });
  return { client, close: async () => await client[Symbol.asyncDispose]() };
}
