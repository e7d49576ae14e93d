import type { AgentAccess, AgentSetting } from "../types.js";

type Env = AgentSetting["env"];

/** Where Google's own programs keep the login that all others use. */
const GOOGLE_LOGIN = ".config/gcloud/application_default_credentials.json";
/** As `gcloud` calls a variable with an access token. */
export const GOOGLE_TOKEN = "CLOUDSDK_AUTH_ACCESS_TOKEN";

/**
 * What an agent needs for the models of Bedrock. `baseUrl` is the variable that names another address; `mantle` is the interface of Bedrock that is like
 * OpenAI's.
 */
export function bedrockAccess(
  env: Env,
  { baseUrl, api = "runtime" }: { baseUrl?: string; api?: "runtime" | "mantle" } = {},
): AgentAccess {
  const region = env["AWS_REGION"] ?? env["AWS_DEFAULT_REGION"] ?? "us-east-1";
  const domain = `${region}.amazonaws.com${region.startsWith("cn-") ? ".cn" : ""}`;
  // The models are listed at a host of its own.
  const [host = "", ...otherHosts] =
    api === "mantle" ? [`bedrock-mantle.${region}.api.aws`] : [`bedrock-runtime.${domain}`, `bedrock.${domain}`];
  const to = { host, otherHosts, ...(baseUrl !== undefined && { baseUrl }) };
  return {
    network: [host, ...otherHosts],
    secrets: [["AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY"]],
    keys: {
      AWS_BEARER_TOKEN_BEDROCK: { ...to, header: "authorization" },
      AWS_SECRET_ACCESS_KEY: { ...to, sign: "aws", with: ["AWS_ACCESS_KEY_ID"], maybeWith: ["AWS_SESSION_TOKEN"] },
    },
  };
}

/** What an agent needs for the models of Vertex AI in a location. `secrets` are variables that it takes in place of Google's login file. */
export function vertexAccess(
  location: string | undefined,
  { secrets, baseUrl }: { secrets: readonly string[]; baseUrl?: string },
): AgentAccess {
  const [host = "", ...otherHosts] = new Set([vertexHost(location ?? "global"), vertexHost("global")]);
  const to = { host, otherHosts, ...(baseUrl !== undefined && { baseUrl }) };
  return {
    network: [host, ...otherHosts],
    secrets: [secrets],
    keys: Object.fromEntries(secrets.map((name) => [name, { ...to, header: headerOf(name) }])),
    logins: { [GOOGLE_LOGIN]: ["oauth2.googleapis.com", "sts.googleapis.com", "iamcredentials.googleapis.com"] },
  };
}

function headerOf(name: string): string {
  return name === GOOGLE_TOKEN ? "authorization" : "x-goog-api-key";
}

function vertexHost(location: string): string {
  if (location === "global") return "aiplatform.googleapis.com";
  return /^[a-z]+$/.test(location)
    ? `aiplatform.${location}.rep.googleapis.com`
    : `${location}-aiplatform.googleapis.com`;
}

/** Whether a switch among the variables is on. */
export function isOn(value: string | undefined): boolean {
  return value !== undefined && /^(?:1|true|yes|on)$/i.test(value);
}
