import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "../../../../../contracts/errors.js";
import { userHome } from "../../../../machine/user-home.js";

/** Where a Docker engine listens, and how to connect to it. */
export interface EngineEndpoint {
  /** As written in DOCKER_HOST, for messages. */
  readonly name: string;
  /** A unix socket or a named pipe. Otherwise `host` and `port`. */
  readonly socketPath?: string;
  readonly host?: string;
  readonly port?: number;
  readonly tls?: TlsMaterial;
}

/** Keys and certificates for TLS, as PEM. */
export interface TlsMaterial {
  readonly ca?: Buffer;
  readonly cert?: Buffer;
  readonly key?: Buffer;
  /** False: the certificate of the engine is not checked. */
  readonly verify: boolean;
}

/** Options that name an engine. Each one wins over the environment. */
export interface EndpointChoice {
  /** Like DOCKER_HOST: `unix:///path`, `tcp://host:port`. */
  host?: string | undefined;
  /** The name of a Docker context. */
  context?: string | undefined;
  /** A folder with ca.pem, cert.pem and key.pem, for `tcp` with TLS. */
  certPath?: string | undefined;
}

type Env = Readonly<Record<string, string | undefined>>;

/** Finds the engine like the docker command: options, DOCKER_HOST, DOCKER_CONTEXT, the current context, the default. */
export function findEndpoint(choice: EndpointChoice = {}, env: Env = process.env): EngineEndpoint {
  const config = env["DOCKER_CONFIG"] || join(userHome(), ".docker");
  if (choice.host !== undefined) return parseHost(choice.host, "docker.host", tlsOfEnv(env, config, choice.certPath));
  if (choice.context !== undefined) return endpointOfContext(choice.context, config);
  if (env["DOCKER_HOST"]) {
    return parseHost(env["DOCKER_HOST"], "DOCKER_HOST", tlsOfEnv(env, config, choice.certPath));
  }
  const context = env["DOCKER_CONTEXT"] || currentContext(config);
  return context === undefined ? defaultEndpoint() : endpointOfContext(context, config);
}

function defaultEndpoint(): EngineEndpoint {
  if (process.platform === "win32") return parseHost("npipe:////./pipe/docker_engine", "the default", undefined);
  const own = join(userHome(), ".docker", "run", "docker.sock");
  const common = "/var/run/docker.sock";
  return parseHost(`unix://${!existsSync(common) && existsSync(own) ? own : common}`, "the default", undefined);
}

function parseHost(value: string, source: string, tls: TlsMaterial | undefined): EngineEndpoint {
  const unix = /^unix:\/\/(\/.+)$/.exec(value)?.[1];
  if (unix !== undefined) return { name: value, socketPath: unix };
  const pipe = /^npipe:\/\/(.+)$/.exec(value)?.[1];
  if (pipe !== undefined) return { name: value, socketPath: pipe.replaceAll("/", "\\") };
  const [, scheme, host, port] =
    /^(tcp|http|https):\/\/(\[[\da-fA-F:.]+\]|[^\s:/@]+)(?::(\d{1,5}))?\/?$/.exec(value) ?? [];
  if (host === undefined || Number(port) > 65_535) {
    if (value.startsWith("ssh://")) {
      throw new SandboxError("unsupported", `${source} "${value}": ssh is not supported`, {
        hint: `ssh -nNT -L /tmp/docker.sock:/var/run/docker.sock ${value.slice(6)}, then DOCKER_HOST=unix:///tmp/docker.sock`,
      });
    }
    throw new SandboxError("invalid_argument", `Invalid ${source}: expected unix:///path or tcp://host:port`, {
      hint: "DOCKER_HOST=unix:///var/run/docker.sock",
    });
  }
  const secure = scheme === "https" ? (tls ?? { verify: true }) : scheme === "tcp" ? tls : undefined;
  return {
    name: value,
    host: host.replace(/^\[|\]$/g, ""),
    port: Number(port ?? (secure ? 2376 : 2375)),
    ...(secure && { tls: secure }),
  };
}

function tlsOfEnv(env: Env, config: string, certPath: string | undefined): TlsMaterial | undefined {
  const verify = Boolean(env["DOCKER_TLS_VERIFY"]);
  if (certPath === undefined && !verify && !env["DOCKER_TLS"]) return undefined;
  return tlsOfFolder(certPath ?? (env["DOCKER_CERT_PATH"] || config), certPath !== undefined || verify);
}

function tlsOfFolder(folder: string, verify: boolean): TlsMaterial {
  const read = (name: string): Buffer | undefined => {
    const path = join(folder, name);
    if (!existsSync(path)) return undefined;
    return readFileSync(path);
  };
  const [ca, cert, key] = [read("ca.pem"), read("cert.pem"), read("key.pem")];
  return { verify, ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) };
}

function currentContext(config: string): string | undefined {
  const { currentContext: name } = readObject(join(config, "config.json")) ?? {};
  return typeof name === "string" && name !== "" && name !== "default" ? name : undefined;
}

/** Contexts are stored under the hash of their name. */
function endpointOfContext(name: string, config: string): EngineEndpoint {
  if (name === "default") return defaultEndpoint();
  const place = createHash("sha256").update(name).digest("hex");
  const meta = readObject(join(config, "contexts", "meta", place, "meta.json"));
  const docker = (meta?.["Endpoints"] as Record<string, unknown> | undefined)?.["docker"] as
    | { Host?: unknown; SkipTLSVerify?: unknown }
    | undefined;
  if (typeof docker?.Host !== "string") {
    throw new SandboxError("not_found", `There is no Docker context "${name}"`, { hint: "docker context ls" });
  }
  const certificates = join(config, "contexts", "tls", place, "docker");
  const tls = existsSync(certificates) ? tlsOfFolder(certificates, docker.SkipTLSVerify !== true) : undefined;
  return parseHost(docker.Host, `the Docker context "${name}"`, tls);
}

function readObject(path: string): Record<string, unknown> | undefined {
  if (!existsSync(path)) return undefined;
  try {
    const value: unknown = JSON.parse(readFileSync(path, "utf8"));
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch (cause) {
    throw new SandboxError("invalid_argument", `${path} cannot be read`, { cause });
  }
  throw new SandboxError("invalid_argument", `${path} is not an object`);
}
