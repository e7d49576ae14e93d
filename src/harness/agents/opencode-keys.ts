import type { AgentKey, AgentSetting } from "../types.js";
import { httpsHost } from "./https-host.js";
import { asRecord, asText, type Untrusted } from "./json-line.js";

/** The configuration of opencode that a variable has. */
const CONFIG_VARIABLE = "OPENCODE_CONFIG_CONTENT";
/** Names a file of its own choice, which nobody reads outside. */
const CONFIG_PATH = "OPENCODE_CONFIG";
/** The files below HOME that it merges. */
const CONFIG_FILES = ["config.json", "opencode.json", "opencode.jsonc"].map((name) => `.config/opencode/${name}`);

/** The services that opencode knows without a configuration, by its names for them, with the variables of their keys. */
const KNOWN: Readonly<Record<string, AgentKey & { readonly variable: string; readonly host: string }>> = {
  anthropic: {
    ...{ variable: "ANTHROPIC_API_KEY", host: "api.anthropic.com" },
    ...{ header: "x-api-key", prefix: "sk-ant-" },
  },
  openai: { variable: "OPENAI_API_KEY", host: "api.openai.com", header: "authorization", prefix: "sk-" },
  google: { variable: "GEMINI_API_KEY", host: "generativelanguage.googleapis.com", header: "x-goog-api-key" },
  // Each model wants it in the header of its own maker.
  opencode: { variable: "OPENCODE_API_KEY", host: "opencode.ai" },
};

/** A service as a configuration declares it. */
interface Declared {
  readonly id: string;
  readonly variables: readonly string[];
  /** Absent: its usual address. */
  readonly baseUrl?: string;
}

/**
 * Where opencode sends each of its keys: to the services that it knows, and to those that the configuration of its node gives the same key. What a
 * repository says has no part in it.
 */
export function opencodeKeys(setting: AgentSetting): Record<string, AgentKey> {
  const declared = declaredIn(setting);
  return Object.fromEntries(
    Object.entries(KNOWN).map(([id, { variable, ...known }]) => {
      if (typeof declared === "string") return [variable, { unknown: declared }];
      return [variable, keyOf({ id, variable, known }, declared, setting)];
    }),
  );
}

function keyOf(
  { id, variable, known }: { id: string; variable: string; known: AgentKey & { readonly host: string } },
  declared: readonly Declared[],
  { model }: AgentSetting,
): AgentKey {
  const users = declared.filter(({ variables }) => variables.includes(variable));
  const elsewhere = users.filter(({ baseUrl }) => baseUrl !== undefined);
  // Its usual host does not get it where the node's model is one of another service with the same key.
  const isUsual = !users.some((user) => user.baseUrl !== undefined && (user.id === id || isOf(model, user.id)));
  const hosts = elsewhere.map(({ baseUrl = "" }) => httpsHost(baseUrl));
  const at = hosts.indexOf(undefined);
  if (at !== -1) return { unknown: `the base URL of ${elsewhere[at]?.id} is no address with https` };
  const [host = known.host, ...otherHosts] = [...new Set([...(isUsual ? [known.host] : []), ...hosts])];
  const isOwn = elsewhere.every((each) => each.id === id);
  const { header, prefix } = known;
  return {
    ...{ host, otherHosts: otherHosts.filter((each) => each !== undefined), config: CONFIG_VARIABLE },
    ...(prefix !== undefined && { prefix }),
    ...(header !== undefined && isOwn && { header }),
  };
}

function isOf(model: string | undefined, provider: string): boolean {
  return model?.startsWith(`${provider}/`) === true;
}

/** The services of all its configurations; or why they are not known. */
function declaredIn({ env, home = {} }: AgentSetting): Declared[] | string {
  if (env[CONFIG_PATH] !== undefined) return `${CONFIG_PATH} names a file that is not read`;
  const texts = [
    ...CONFIG_FILES.map((path) => [`~/${path}`, home[path]] as const),
    [CONFIG_VARIABLE, env[CONFIG_VARIABLE]] as const,
  ];
  const found = new Map<string, Declared>();
  for (const [name, text] of texts) {
    if (text === undefined) continue;
    const config = readJson(text);
    if (config === undefined) return `${name} can't be read`;
    for (const [id, each] of Object.entries(asRecord(config["provider"]) ?? {})) {
      found.set(id, merged(id, asRecord(each) ?? {}, found.get(id)));
    }
  }
  return [...found.values()];
}

function merged(id: string, provider: Untrusted, before: Declared | undefined): Declared {
  const options = asRecord(provider["options"]) ?? {};
  const known = Object.hasOwn(KNOWN, id) ? KNOWN[id]?.variable : undefined;
  const referred = /^\{env:([^}]+)\}$/.exec(asText(options["apiKey"]) ?? "")?.[1];
  const listed = Array.isArray(provider["env"]) ? provider["env"].flatMap((name) => asText(name) ?? []) : [];
  const baseUrl = asText(options["baseURL"]) ?? asText(provider["api"]) ?? before?.baseUrl;
  const variables = [known, referred, ...listed, ...(before?.variables ?? [])].filter((name) => name !== undefined);
  return { id, variables, ...(baseUrl !== undefined && { baseUrl }) };
}

/** JSON with comments and trailing commas, as opencode reads it; undefined for anything else. */
function readJson(text: string): Untrusted | undefined {
  const string = /"(?:\\.|[^"\\])*"/.source;
  const kept = (all: string): string => (all.startsWith('"') ? all : "");
  const bare = text.replace(new RegExp(`${string}|//[^\\n]*|/\\*[^]*?\\*/`, "g"), kept);
  try {
    return asRecord(JSON.parse(bare.replace(new RegExp(`${string}|,(?=\\s*[}\\]])`, "g"), kept)));
  } catch {
    return undefined;
  }
}
