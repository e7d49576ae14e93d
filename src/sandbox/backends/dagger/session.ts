import type { Client, Container } from "@dagger.io/dagger";
import type { DaggerOptions } from "./dagger-options.js";
import { sessionOf } from "./endpoint.js";
import { daggerError } from "./failure.js";
import { patientFetch } from "./fetch.js";
import { findCli } from "./find-cli.js";
import { HostListener } from "./host-listener.js";
import { loadSdk, type Sdk } from "./load-sdk.js";
import { type Endpoint, startCli } from "./start-cli.js";

/** An open session with an engine, shared by all sandboxes of this process that use it. */
export interface Session {
  readonly client: Client;
  readonly sdk: Sdk;
  /** Where the guests of its sandboxes call. */
  readonly listener: HostListener;
  /** The containers of snapshots that were taken in this session: restoring one of them is free. */
  readonly snapshots: Map<string, Container>;
  /** Ends its use; the last user closes the connection and the program. */
  close(): Promise<void>;
}

interface Shared {
  users: number;
  readonly opened: Promise<Session>;
}

const sessions = new Map<string, Shared>();

/** Joins the session that the options or the environment name, or starts one with the `dagger` program. */
export async function openSession(opts: DaggerOptions, signal?: AbortSignal): Promise<Session> {
  const given = opts.session ?? sessionOf(process.env);
  const program = given === undefined ? findCli(opts.cli) : undefined;
  const sdk = (opts.sdk as Sdk | undefined) ?? (await loadSdk());
  const key = program ?? `${given?.port} ${given?.token}`;
  const shared = sessions.get(key) ?? { users: 0, opened: connect(sdk, given, program) };
  sessions.set(key, shared);
  const forget = (): void => {
    if (sessions.get(key) === shared) sessions.delete(key);
  };
  // After a failure, the next caller tries again.
  shared.opened.catch(forget);
  shared.users++;
  const endUse = async (): Promise<void> => {
    if (--shared.users > 0) return;
    forget();
    await shared.opened.then(({ close }) => close());
  };
  try {
    const opened = await unlessAborted(shared.opened, signal);
    let closed: Promise<void> | undefined;
    return {
      ...opened,
      close: () => {
        closed ??= endUse();
        return closed;
      },
    };
  } catch (error) {
    // Others may still be waiting for the same start.
    endUse().catch(() => undefined);
    throw error;
  }
}

async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await work;
  let onAbort = (): void => undefined;
  const aborted = new Promise<never>((_, reject) => {
    onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
  });
  try {
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

async function connect(sdk: Sdk, given: Endpoint | undefined, program: string | undefined): Promise<Session> {
  const own = program === undefined ? undefined : await startCli(program);
  const { port, token } = (own ?? given) as Endpoint;
  const graphql = new sdk.GraphQLClient(`http://127.0.0.1:${port}/query`, {
    headers: { Authorization: `Basic ${Buffer.from(`${token}:`).toString("base64")}` },
    fetch: patientFetch as typeof fetch,
  });
  // The SDK's own connection would start the program itself; this method is all the SDK needs from one.
  const connection = { getGQLClient: () => graphql } as unknown as ConstructorParameters<Sdk["Context"]>[1];
  const client = new sdk.Client(new sdk.Context([], connection));
  try {
    await client.version();
    const listener = await HostListener.open(client);
    const close = async (): Promise<void> => {
      listener.close();
      await own?.close();
    };
    return { client, sdk, listener, snapshots: new Map(), close };
  } catch (error) {
    await own?.close();
    throw daggerError(error, "The Dagger session does not answer");
  }
}
