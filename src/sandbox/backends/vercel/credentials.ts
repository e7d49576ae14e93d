import { SandboxError } from "../../../../contracts/errors.js";
import type { VercelOptions } from "./vercel-options.js";

/** What every call to the service needs. */
export interface VercelCredentials {
  readonly token: string;
  readonly teamId: string;
  readonly projectId: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

const FIELDS = { token: "VERCEL_TOKEN", teamId: "VERCEL_TEAM_ID", projectId: "VERCEL_PROJECT_ID" } as const;
const NAMES = Object.keys(FIELDS) as (keyof VercelCredentials)[];
const WHAT_TO_SET =
  "run `vercel link` and `vercel env pull` for VERCEL_OIDC_TOKEN, or set VERCEL_TOKEN, VERCEL_TEAM_ID and VERCEL_PROJECT_ID";

/**
 * Finds the credentials: explicit ones, otherwise the token that Vercel gives to its own functions, otherwise the three variables.
 *
 * All three are always passed to the SDK: with fewer it would ask the user to log in, in the middle of a program.
 */
export function findCredentials(given: VercelOptions = {}, env: Environment = process.env): VercelCredentials {
  const explicit = NAMES.filter((name) => given[name] !== undefined);
  if (explicit.length > 0)
    return complete(
      (name) => given[name],
      (name) => `vercel.${name}`,
    );
  const oidc = requestToken() ?? env["VERCEL_OIDC_TOKEN"];
  if (oidc) return fromOidc(oidc);
  if (NAMES.some((name) => env[FIELDS[name]]))
    return complete(
      (name) => env[FIELDS[name]],
      (name) => FIELDS[name],
    );
  throw new SandboxError("unauthenticated", "There are no credentials for Vercel", { hint: WHAT_TO_SET });
}

function complete(
  find: (name: keyof VercelCredentials) => string | undefined,
  labelOf: (name: keyof VercelCredentials) => string,
): VercelCredentials {
  const missing = NAMES.filter((name) => !find(name)).map(labelOf);
  const there = NAMES.filter((name) => find(name)).map(labelOf);
  if (missing.length > 0) {
    throw new SandboxError(
      "unauthenticated",
      `The credentials for Vercel are incomplete: ${there.join(" and ")} without ${missing.join(" and ")}`,
      { hint: `set ${missing.join(" and ")} too` },
    );
  }
  const [token = "", teamId = "", projectId = ""] = NAMES.map(find);
  const { owner_id: owner } = claimsOf(token) ?? {};
  if (typeof owner === "string" && owner !== teamId) {
    throw new SandboxError(
      "unauthenticated",
      `The token for Vercel belongs to the team ${owner}, but ${labelOf("teamId")} is ${teamId}`,
      { hint: "set the team of the token, or use a token of the other team" },
    );
  }
  return { token, teamId, projectId };
}

/** In a Vercel function the token comes with each request, not from the environment. */
function requestToken(): string | undefined {
  interface RequestContext {
    get?(): { headers?: Readonly<Record<string, string | undefined>> } | undefined;
  }
  const context = (globalThis as Record<symbol, RequestContext | undefined>)[Symbol.for("@vercel/request-context")];
  return context?.get?.()?.headers?.["x-vercel-oidc-token"];
}

/** The token itself names its team and project. */
function fromOidc(token: string): VercelCredentials {
  const unusable = (why: string): SandboxError =>
    new SandboxError("unauthenticated", `The OIDC token of Vercel can't be used: ${why}`, { hint: WHAT_TO_SET });
  const claims = claimsOf(token);
  if (claims === undefined) throw unusable("it is not a JSON web token");
  const { owner_id: teamId, project_id: projectId, exp } = claims;
  if (typeof teamId !== "string" || typeof projectId !== "string") throw unusable("it names no team and project");
  if (typeof exp === "number" && exp * 1_000 < Date.now()) throw unusable("it has expired");
  return { token, teamId, projectId };
}

/** The claims of a JSON web token; undefined if it is not one. */
function claimsOf(token: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
    return typeof claims === "object" && claims !== null ? (claims as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
