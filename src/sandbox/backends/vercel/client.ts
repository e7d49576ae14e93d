import { SandboxError } from "../../../../contracts/errors.js";
import { registerSecret } from "../../../util/redact.js";
import { findCredentials, type VercelCredentials } from "./credentials.js";
import { WAIT_HEADER } from "./failure.js";
import type { VercelOptions } from "./vercel-options.js";

/** The SDK's module. */
export type VercelSdk = typeof import("@vercel/sandbox");

/** The SDK together with the credentials for each of its calls. */
export interface VercelClient {
  readonly sdk: VercelSdk;
  readonly access: VercelCredentials & { fetch: typeof globalThis.fetch };
}

const ADDRESS = "https://vercel.com/api";
/** The SDK itself waits up to so many seconds, unseen and without a deadline; longer waits it reports. */
const SDK_PATIENCE = 20;
/** The clients that this process has used, so that they can remove what they made. */
const used = new Map<string, VercelClient>();

/** Returns the SDK with the credentials, or throws with what is missing. */
export async function connect(opts: VercelOptions = {}): Promise<VercelClient> {
  const credentials = findCredentials(opts);
  registerSecret(credentials.token, "VERCEL_TOKEN");
  const sdk = (opts.sdk as VercelSdk | undefined) ?? (await importSdk());
  const client = { sdk, access: { ...credentials, fetch: openAboutWaits(redirected(opts.fetch ?? globalThis.fetch)) } };
  used.set(placeOf(credentials), client);
  return client;
}

/** The client for a recorded resource: one of this process, otherwise one with the credentials of the environment. */
export async function connectTo(teamId: string, projectId: string): Promise<VercelClient> {
  const known = used.get(placeOf({ teamId, projectId }));
  if (known !== undefined) return known;
  const client = await connect();
  if (placeOf(client.access) === placeOf({ teamId, projectId })) return client;
  throw new SandboxError("unauthenticated", `The credentials are not for the project ${projectId}`, {
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

/** Distinguishes a missing package from a broken one. */
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

/** The SDK knows only one address; it is replaced here to reach a proxy or a stand-in. */
function redirected(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  const other = process.env["GLOVEBOX_VERCEL_API"];
  if (!other) return fetch;
  return (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    return fetch(url.startsWith(ADDRESS) ? `${other}${url.slice(ADDRESS.length)}` : url, init);
  };
}

/** Leaves every wait that the service asks for to us: the caller has a deadline, which the SDK does not know. */
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
