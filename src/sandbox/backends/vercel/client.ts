import { SandboxError } from "../../../../contracts/errors.js";
import { registerSecret } from "../../../util/redact.js";
import { findCredentials, type VercelCredentials } from "./credentials.js";
import { WAIT_HEADER } from "./failure.js";
import type { VercelOptions } from "./vercel-options.js";

/** The SDK's module. */
export type VercelSdk = typeof import("@vercel/sandbox");

/** The SDK together with what each of its calls is given. */
export interface VercelClient {
  readonly sdk: VercelSdk;
  readonly access: VercelCredentials & { fetch: typeof globalThis.fetch };
}

const ADDRESS = "https://vercel.com/api";
/** The SDK waits so many seconds by itself, unseen and without a deadline; of more it says so. */
const SDK_PATIENCE = 20;
/** Clients that this process has used, so that what they made can be taken away by them. */
const used = new Map<string, VercelClient>();

/** Gets the SDK and the credentials, or says what is missing of them. */
export async function connect(opts: VercelOptions = {}): Promise<VercelClient> {
  const credentials = findCredentials(opts);
  registerSecret(credentials.token, "VERCEL_TOKEN");
  const sdk = (opts.sdk as VercelSdk | undefined) ?? (await importSdk());
  const client = { sdk, access: { ...credentials, fetch: openAboutWaits(redirected(opts.fetch ?? globalThis.fetch)) } };
  used.set(placeOf(credentials), client);
  return client;
}

/** The client for what a record names: one of this process, else one with the credentials of the environment. */
export async function connectTo(teamId: string, projectId: string): Promise<VercelClient> {
  const known = used.get(placeOf({ teamId, projectId }));
  if (known !== undefined) return known;
  const client = await connect();
  if (placeOf(client.access) === placeOf({ teamId, projectId })) return client;
  throw new SandboxError("unauthenticated", `The credentials are not those of the project ${projectId}`, {
    hint: `set the credentials of team ${teamId}, project ${projectId}`,
  });
}

/** Imports the SDK, which is an optional package. */
export async function importSdk(): Promise<VercelSdk> {
  try {
    return await import("@vercel/sandbox");
  } catch (cause) {
    return explainImport(cause);
  }
}

/** Tells a package that is missing from one that is broken. */
export function explainImport(cause: unknown): never {
  const { code, message = "" } = cause as { code?: string; message?: string };
  if (code !== "ERR_MODULE_NOT_FOUND" || !message.includes("'@vercel/sandbox'")) throw cause;
  throw new SandboxError("missing_dependency", "The vercel backend needs the package @vercel/sandbox", {
    cause,
    hint: "npm install @vercel/sandbox",
  });
}

function placeOf({ teamId, projectId }: Pick<VercelCredentials, "teamId" | "projectId">): string {
  return `${teamId}/${projectId}`;
}

/** The SDK knows one address only; a proxy or a stand-in is reached by changing it here. The rest stays as it is. */
function redirected(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  const other = process.env["GLOVEBOX_VERCEL_API"];
  if (!other) return fetch;
  return (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    return fetch(url.startsWith(ADDRESS) ? `${other}${url.slice(ADDRESS.length)}` : url, init);
  };
}

/** Leaves every wait that the service asks for to us: who calls has a deadline, of which the SDK knows nothing. */
function openAboutWaits(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return async (input, init) => {
    const response = await fetch(input, init);
    const seconds = Number(response.headers.get("retry-after") ?? Number.NaN);
    if (response.status !== 429 || !(seconds > 0 && seconds <= SDK_PATIENCE)) return response;
    const headers = new Headers(response.headers);
    headers.set("retry-after", `${SDK_PATIENCE + 1}`);
    headers.set(WAIT_HEADER, `${seconds}`);
    return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
  };
}
