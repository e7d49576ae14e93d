import { findLogin, type RegistryLogin, registryOf } from "../../registry-login.js";

/** The header with the credentials for pulling this image, from the user's Docker config. Empty when there are none. */
export async function pullCredentials(image: string): Promise<Record<string, string>> {
  const login = await findLogin(registryOf(image));
  return login === undefined ? {} : { "X-Registry-Auth": encode(login) };
}

/** The header with the credentials for the base images of a build. */
export async function buildCredentials(images: readonly string[]): Promise<Record<string, string>> {
  const logins: Record<string, RegistryLogin> = {};
  for (const registry of new Set(images.map(registryOf))) {
    const login = await findLogin(registry);
    if (login !== undefined) logins[login.serveraddress] = login;
  }
  return Object.keys(logins).length === 0 ? {} : { "X-Registry-Config": encode(logins) };
}

/** Keeps the padding: an engine silently ignores a header without it. */
function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64").replaceAll("+", "-").replaceAll("/", "_");
}
