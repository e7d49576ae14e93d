import { existsSync, readFileSync } from "node:fs";
import { delimiter, dirname, isAbsolute, join, resolve } from "node:path";
import { SandboxError } from "../../../../../contracts/errors.js";
import { userHome } from "../../../../machine/user-home.js";

/** Which cluster to use. Every field wins over what the files say. */
export interface ClusterChoice {
  /** Path of the only kubeconfig to read. */
  kubeconfig?: string | undefined;
  /** Default: the current one. */
  context?: string | undefined;
  /** Default: that of the context, then `default`. */
  namespace?: string | undefined;
}

/** Where a cluster is, and who we are there. */
export interface ClusterAccess {
  /** For messages: the context, or `in-cluster`. */
  readonly name: string;
  readonly server: URL;
  readonly namespace: string;
  readonly ca?: string | Buffer;
  /** False: anybody can pretend to be the server. */
  readonly isVerified: boolean;
  readonly serverName?: string;
  readonly user: ClusterUser;
}

/** The user's entry of a kubeconfig; paths are absolute. */
export interface ClusterUser {
  readonly token?: string;
  readonly tokenFile?: string;
  readonly username?: string;
  readonly password?: string;
  readonly certificate?: PemSource;
  readonly key?: PemSource;
  readonly exec?: ExecEntry;
  /** The headers of an impersonation. */
  readonly as?: Readonly<Record<string, string | readonly string[]>>;
}

/** A certificate or key: in the kubeconfig itself, or in a file that may be renewed. */
export type PemSource = { readonly text: string } | { readonly path: string };

/** A program that prints credentials. */
export interface ExecEntry {
  readonly apiVersion: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly installHint?: string;
  /** What the program gets to know about the cluster, if it wants it. */
  readonly cluster?: Readonly<Record<string, unknown>>;
}

type Env = Readonly<Record<string, string | undefined>>;
type Entry = Readonly<Record<string, unknown>>;

/** A kubeconfig, or several as one. Each named entry knows the folder that its relative paths start from. */
interface Merged {
  readonly files: readonly string[];
  currentContext?: string;
  readonly clusters: Map<string, Placed>;
  readonly users: Map<string, Placed>;
  readonly contexts: Map<string, Placed>;
}
interface Placed {
  readonly entry: Entry;
  readonly folder: string;
}

const IN_CLUSTER = "/var/run/secrets/kubernetes.io/serviceaccount";
const LARGEST_FILE = 8 << 20;

/** Finds the cluster as kubectl does: the option, KUBECONFIG, `~/.kube/config`, then the service account of the pod that we run in. */
export async function findCluster(choice: ClusterChoice = {}, env: Env = process.env): Promise<ClusterAccess> {
  const merged = await readFiles(choice, env);
  const name = choice.context ?? merged.currentContext;
  if (name !== undefined && (merged.contexts.size > 0 || choice.context !== undefined)) {
    return ofContext(name, merged, choice);
  }
  const own = ofServiceAccount(choice, env);
  if (own !== undefined) return own;
  const read =
    merged.files.length > 0 ? `${merged.files.join(", ")} names no current context` : "there is no kubeconfig";
  throw new SandboxError("unauthenticated", `No Kubernetes cluster is configured: ${read}`, {
    backend: "kubernetes",
    hint:
      merged.contexts.size > 0
        ? `kubectl config use-context ${[...merged.contexts.keys()][0]}, or name one: kubernetes: { context: "…" }`
        : 'set KUBECONFIG, or name a file: kubernetes: { kubeconfig: "…" }',
  });
}

/** The file that is read when nothing names another one. */
export function homeConfig(): string {
  return join(userHome(), ".kube", "config");
}

async function readFiles(choice: ClusterChoice, env: Env): Promise<Merged> {
  const listed = (env["KUBECONFIG"] ?? "").split(delimiter).filter((path) => path !== "");
  const home = homeConfig();
  const asked = choice.kubeconfig === undefined ? undefined : resolve(choice.kubeconfig);
  if (asked !== undefined && !existsSync(asked)) {
    throw new SandboxError("not_found", `Option kubernetes.kubeconfig: there is no file "${asked}"`, {
      backend: "kubernetes",
    });
  }
  const paths = asked !== undefined ? [asked] : listed.length > 0 ? listed : [home];
  const found = paths.map((path) => resolve(path)).filter((path) => existsSync(path));
  if (listed.length > 0 && found.length === 0) {
    throw new SandboxError("not_found", `KUBECONFIG names no file that exists: ${listed.join(", ")}`, {
      backend: "kubernetes",
    });
  }
  const merged: Merged = { files: found, clusters: new Map(), users: new Map(), contexts: new Map() };
  for (const path of found) await addFile(merged, path);
  return merged;
}

/** What an earlier file says wins. */
async function addFile(merged: Merged, path: string): Promise<void> {
  const { parse } = await import("yaml");
  let document: Entry;
  try {
    const text = readFileSync(path, "utf8");
    if (text.length > LARGEST_FILE) throw new Error(`it has ${text.length} characters`);
    document = toEntry(parse(text) ?? {}, "the document");
  } catch (cause) {
    // The parser's message may show a line of the file, and with it a token.
    const { code = "not valid YAML" } = cause as { code?: string };
    throw new SandboxError("invalid_argument", `The kubeconfig ${path} cannot be read (${code})`, {
      backend: "kubernetes",
    });
  }
  const current = document["current-context"];
  if (typeof current === "string" && current !== "") merged.currentContext ??= current;
  const folder = dirname(path);
  for (const [list, member] of [
    ["clusters", "cluster"],
    ["users", "user"],
    ["contexts", "context"],
  ] as const) {
    const entries = document[list] ?? [];
    if (!Array.isArray(entries)) throw wrong(`${path}: ${list} is not a list`);
    for (const value of entries as unknown[]) {
      const { name, [member]: body } = toEntry(value, `${path}: an entry of ${list}`);
      if (typeof name !== "string") throw wrong(`${path}: an entry of ${list} has no name`);
      if (!merged[list].has(name)) merged[list].set(name, { entry: toEntry(body ?? {}, `${list} ${name}`), folder });
    }
  }
}

function ofContext(name: string, merged: Merged, choice: ClusterChoice): ClusterAccess {
  const context = merged.contexts.get(name)?.entry;
  if (context === undefined) {
    const known = [...merged.contexts.keys()];
    throw new SandboxError("not_found", `There is no Kubernetes context "${name}"`, {
      backend: "kubernetes",
      hint: known.length > 0 ? `known contexts: ${known.join(", ")}` : "kubectl config get-contexts",
    });
  }
  const find = (list: "clusters" | "users", key: "cluster" | "user"): Placed => {
    const wanted = textOf(context, key);
    const found = wanted === undefined ? undefined : merged[list].get(wanted);
    if (found !== undefined) return found;
    if (key === "user" && wanted === undefined) return { entry: {}, folder: "/" };
    throw wrong(`the context "${name}" names the ${key} "${wanted ?? ""}", which is in no kubeconfig`);
  };
  const { entry: cluster, folder } = find("clusters", "cluster");
  const what = `the cluster of the context "${name}"`;
  if (textOf(cluster, "proxy-url") !== undefined) {
    throw new SandboxError("unsupported", `${what} has a proxy-url; connections through a proxy are not supported`, {
      backend: "kubernetes",
      hint: "make a tunnel to the API server and use its address as the server",
    });
  }
  const ca = pemOf(cluster, "certificate-authority", folder);
  const serverName = textOf(cluster, "tls-server-name");
  const server = serverOf(textOf(cluster, "server"), what);
  const isVerified = cluster["insecure-skip-tls-verify"] !== true;
  const caText = ca === undefined ? undefined : readPem(ca);
  return {
    name,
    server,
    namespace: choice.namespace ?? textOf(context, "namespace") ?? "default",
    ...(caText !== undefined && { ca: caText }),
    isVerified,
    ...(serverName !== undefined && { serverName }),
    user: userOf(find("users", "user"), {
      server: server.href,
      ...(caText !== undefined && { "certificate-authority-data": Buffer.from(caText).toString("base64") }),
      ...(!isVerified && { "insecure-skip-tls-verify": true }),
      ...(serverName !== undefined && { "tls-server-name": serverName }),
      config: execConfigOf(cluster),
    }),
  };
}

/** The configuration that a cluster's entry has for the programs that print credentials. */
function execConfigOf(cluster: Entry): unknown {
  const { extensions } = cluster;
  if (!Array.isArray(extensions)) return undefined;
  const found = (extensions as { name?: unknown; extension?: unknown }[]).find(
    (extension) => extension?.name === "client.authentication.k8s.io/exec",
  );
  return found?.extension;
}

function ofServiceAccount(choice: ClusterChoice, env: Env): ClusterAccess | undefined {
  const { KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port = "443" } = env;
  const tokenFile = join(IN_CLUSTER, "token");
  if (!host || !existsSync(tokenFile)) return undefined;
  const namespaceFile = join(IN_CLUSTER, "namespace");
  const own = existsSync(namespaceFile) ? readFileSync(namespaceFile, "utf8").trim() : "default";
  return {
    name: "in-cluster",
    server: new URL(`https://${host.includes(":") ? `[${host}]` : host}:${port}`),
    namespace: choice.namespace ?? own,
    ca: readPem({ path: join(IN_CLUSTER, "ca.crt") }),
    isVerified: true,
    user: { tokenFile },
  };
}

function serverOf(text: string | undefined, what: string): URL {
  const url = text === undefined ? undefined : (URL.parse?.(text) ?? toUrl(text));
  if (url === undefined || !["https:", "http:"].includes(url.protocol))
    throw wrong(`${what} has no address of a server`);
  const isHere = /^(localhost|127(\.\d+){3}|\[::1\])$/.test(url.hostname);
  if (url.protocol === "http:" && !isHere) {
    throw new SandboxError("unsupported", `${what} has an address without TLS: ${url.origin}`, {
      backend: "kubernetes",
      hint: "use https; http is accepted for an address of this machine only",
    });
  }
  return url;
}

function toUrl(text: string): URL | undefined {
  try {
    return new URL(text);
  } catch {
    return undefined;
  }
}

function userOf({ entry, folder }: Placed, cluster: Entry): ClusterUser {
  if (entry["auth-provider"] !== undefined) {
    throw new SandboxError(
      "unsupported",
      "The kubeconfig's auth-provider is not supported: Kubernetes removed it in 1.26",
      {
        backend: "kubernetes",
        hint: "let the cloud's command write an exec entry, for example: gcloud container clusters get-credentials",
      },
    );
  }
  const [token, tokenFile] = [textOf(entry, "token"), textOf(entry, "tokenFile")];
  const [username, password] = [textOf(entry, "username"), textOf(entry, "password")];
  const [certificate, key] = [pemOf(entry, "client-certificate", folder), pemOf(entry, "client-key", folder)];
  const exec = entry["exec"] === undefined ? undefined : execOf(toEntry(entry["exec"], "exec"), folder, cluster);
  const as = impersonation(entry);
  return {
    ...(token !== undefined && { token }),
    ...(tokenFile !== undefined && { tokenFile: resolve(folder, tokenFile) }),
    ...(username !== undefined && { username, password: password ?? "" }),
    ...(certificate && { certificate }),
    ...(key && { key }),
    ...(exec && { exec }),
    ...(as && { as }),
  };
}

function impersonation(entry: Entry): ClusterUser["as"] {
  const headers: Record<string, string | string[]> = {};
  const [name, uid] = [textOf(entry, "as"), textOf(entry, "as-uid")];
  if (name !== undefined) headers["Impersonate-User"] = name;
  if (uid !== undefined) headers["Impersonate-Uid"] = uid;
  const groups = entry["as-groups"];
  if (Array.isArray(groups)) headers["Impersonate-Group"] = groups.map(String);
  for (const [key, values] of Object.entries(toEntry(entry["as-user-extra"] ?? {}, "as-user-extra"))) {
    headers[`Impersonate-Extra-${encodeURIComponent(key)}`] = Array.isArray(values)
      ? values.map(String)
      : String(values);
  }
  return Object.keys(headers).length > 0 ? headers : undefined;
}

function execOf(entry: Entry, folder: string, cluster: Entry): ExecEntry {
  const [apiVersion = "", command = ""] = [textOf(entry, "apiVersion"), textOf(entry, "command")];
  if (!/^client\.authentication\.k8s\.io\/v1(beta1)?$/.test(apiVersion)) {
    throw new SandboxError("unsupported", `The kubeconfig's exec entry has the version "${apiVersion}"`, {
      backend: "kubernetes",
      hint: "client.authentication.k8s.io/v1 and v1beta1 are supported; update the program that wrote the kubeconfig",
    });
  }
  if (command === "") throw wrong("the kubeconfig's exec entry has no command");
  if (entry["interactiveMode"] === "Always") {
    throw new SandboxError(
      "unsupported",
      `The credential program ${command} wants a terminal (interactiveMode: Always)`,
      {
        backend: "kubernetes",
        hint: "use credentials that need no terminal",
      },
    );
  }
  const installHint = textOf(entry, "installHint");
  const env = (Array.isArray(entry["env"]) ? (entry["env"] as unknown[]) : []).map((value) => toEntry(value, "env"));
  // As in kubectl: a bare name is looked up in PATH, any other one is relative to the file.
  const program = /[/\\]/.test(command) && !isAbsolute(command) ? resolve(folder, command) : command;
  return {
    apiVersion,
    command: program,
    args: (Array.isArray(entry["args"]) ? (entry["args"] as unknown[]) : []).map(String),
    env: Object.fromEntries(env.map(({ name, value }) => [String(name), String(value ?? "")])),
    ...(installHint !== undefined && { installHint }),
    ...(entry["provideClusterInfo"] === true && { cluster }),
  };
}

/** The data in the file itself wins over a path. */
function pemOf(entry: Entry, name: string, folder: string): PemSource | undefined {
  const [data, path] = [textOf(entry, `${name}-data`), textOf(entry, name)];
  if (data !== undefined) return { text: Buffer.from(data, "base64").toString("utf8") };
  return path === undefined ? undefined : { path: resolve(folder, path) };
}

/** Reads a certificate or a key. */
export function readPem(source: PemSource): string {
  if ("text" in source) return source.text;
  try {
    return readFileSync(source.path, "utf8");
  } catch (cause) {
    throw new SandboxError("unauthenticated", `${source.path}, which the kubeconfig names, cannot be read`, {
      backend: "kubernetes",
      cause,
    });
  }
}

function textOf(entry: Entry, key: string): string | undefined {
  const value = entry[key];
  return typeof value === "string" && value !== "" ? value : undefined;
}

function toEntry(value: unknown, what: string): Entry {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Entry;
  throw wrong(`${what} is not a mapping`);
}

function wrong(why: string): SandboxError {
  return new SandboxError("invalid_argument", `The kubeconfig is not valid: ${why}`, { backend: "kubernetes" });
}
