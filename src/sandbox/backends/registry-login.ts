import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import { userHome } from "../../machine/user-home.js";
import { registerSecret } from "../../util/sanitize.js";

/** The name of Docker Hub in the files of the docker command. */
const HUB = "https://index.docker.io/v1/";
const HELPER_PATIENCE = 10_000;
const MAX_ANSWER = 64 * 1024;

/** Credentials for a registry, in the words of the docker command. */
export interface RegistryLogin {
  username?: string;
  password?: string;
  identitytoken?: string;
  serveraddress: string;
}

interface DockerConfig {
  auths?: Record<string, { auth?: string; identitytoken?: string }>;
  credHelpers?: Record<string, string>;
  credsStore?: string;
}

/** The registry that an image comes from: a first part with a dot, a port, or the name `localhost`; else Docker Hub. */
export function registryOf(image: string): string {
  const [first = "", ...rest] = image.split("/");
  if (rest.length === 0 || !(/[.:]/.test(first) || first === "localhost")) return "docker.io";
  return first;
}

/** The user's login at a registry, from the Docker configuration; undefined when there is none. */
export async function findLogin(registry: string): Promise<RegistryLogin | undefined> {
  const { auths = {}, credHelpers = {}, credsStore } = readConfig();
  const names = registry === "docker.io" ? [HUB, "docker.io"] : [registry, `https://${registry}`, `http://${registry}`];
  for (const name of names) {
    const helper = credHelpers[name] ?? (name in auths || registry === "docker.io" ? credsStore : undefined);
    const login = helper === undefined ? undefined : await askHelper(helper, name);
    if (login !== undefined) return login;
    const entry = auths[name];
    if (entry?.identitytoken) return hide({ identitytoken: entry.identitytoken, serveraddress: name });
    if (entry?.auth) return hide({ ...decode(entry.auth), serveraddress: name });
  }
  return undefined;
}

function readConfig(): DockerConfig {
  const path = join(process.env["DOCKER_CONFIG"] || join(userHome(), ".docker"), "config.json");
  if (!existsSync(path)) return {};
  try {
    return JSON.parse(readFileSync(path, "utf8")) as DockerConfig;
  } catch (cause) {
    throw new SandboxError("invalid_argument", `${path} is not valid JSON`, { cause });
  }
}

function decode(auth: string): { username: string; password: string } {
  const text = Buffer.from(auth, "base64").toString().replace(/\0+$/, "");
  const border = text.indexOf(":");
  return { username: text.slice(0, border), password: text.slice(border + 1) };
}

/** Runs `docker-credential-<name> get`. A helper that doesn't know the registry is no failure. */
async function askHelper(name: string, registry: string): Promise<RegistryLogin | undefined> {
  if (!/^[A-Za-z0-9_.-]+$/.test(name)) {
    throw new SandboxError("invalid_argument", `The Docker config names an invalid credential helper: "${name}"`);
  }
  const answer = await new Promise<string | undefined>((resolve, reject) => {
    const child = spawn(`docker-credential-${name}`, ["get"], {
      stdio: ["pipe", "pipe", "ignore"],
      timeout: HELPER_PATIENCE,
    });
    let output = "";
    child.on("error", (cause) => {
      const message = `The credential helper docker-credential-${name} could not be started`;
      reject(new SandboxError("missing_dependency", message, { cause }));
    });
    child.stdin.on("error", () => undefined);
    child.stdout.on("data", (chunk: Buffer) => {
      if (output.length < MAX_ANSWER) output += chunk;
    });
    child.on("close", (code) => resolve(code === 0 ? output : undefined));
    child.stdin.end(registry);
  });
  if (answer === undefined) return undefined;
  const { Username, Secret } = JSON.parse(answer) as { Username?: string; Secret?: string };
  if (!Secret) return undefined;
  if (Username === "<token>") return hide({ identitytoken: Secret, serveraddress: registry });
  return hide({ username: Username ?? "", password: Secret, serveraddress: registry });
}

function hide(login: RegistryLogin): RegistryLogin {
  for (const secret of [login.password, login.identitytoken]) if (secret) registerSecret(secret);
  return login;
}
