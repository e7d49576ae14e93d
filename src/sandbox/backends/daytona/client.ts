import { createRequire } from "node:module";
import type { Daytona, Sandbox as RemoteSandbox } from "@daytona/sdk";
import { SandboxError } from "../../../../contracts/errors.js";
import { ownFile } from "../../../util/own-version.js";
import type { Account } from "./options.js";

export type { Daytona, RemoteSandbox };

/** A client, and how it is let go of. */
export interface Connection {
  readonly client: Daytona;
  /** Closes what keeps this process alive. One that the caller injected stays open. */
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

/** The same code as CommonJS is there in half the time. Undefined where it is not found so, for example in a bundle. */
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
  // Polled: the socket of events keeps a process alive for a minute when it cannot connect.
  const client = new Client({ apiKey, apiUrl, target, useDeprecatedPolling: true });
  return { client, close: async () => await client[Symbol.asyncDispose]() };
}
