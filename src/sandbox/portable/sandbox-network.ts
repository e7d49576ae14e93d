import { SandboxError } from "../../../contracts/errors.js";
import type { NetworkPolicy, NetworkWindow, SecretRule } from "../../../contracts/types.js";
import * as is from "../../util/schema.js";
import { check, type Schema } from "../../util/schema.js";
import { assertCapabilities, reasonFor } from "../capabilities.js";
import { assertVariables, secretsSchema } from "../egress.js";
import type { OpenSandboxState } from "./open-sandbox-state.js";

const hosts: Schema<string[]> = is.list(is.text);

interface NetworkLife {
  checkNetwork?(network: unknown): Promise<void>;
}

/** Lets a sandbox reach more hosts for a while. */
export async function openNetwork(
  { driver, running }: OpenSandboxState,
  allow: readonly string[],
  life: NetworkLife,
): Promise<NetworkWindow> {
  check(allow, hosts, "allow");
  if (driver.openNetwork === undefined) {
    throw new SandboxError("unsupported", `The ${driver.backend} backend has no openNetwork`);
  }
  if (running.size > 0) {
    throw new SandboxError("conflict", "Processes still run in the sandbox, and would get the network, too", {
      retryable: false,
      hint: "end them first",
    });
  }
  await life.checkNetwork?.({ allow: [...allow] });
  return await driver.openNetwork(allow);
}

/** Replaces the rules of an open sandbox. Commands that start from now on get the variables that they need. */
export async function setNetwork(
  { driver, env }: OpenSandboxState,
  network: Exclude<NetworkPolicy, "full">,
  life: NetworkLife,
  own: Readonly<Record<string, string>> = {},
): Promise<void> {
  await life.checkNetwork?.(network);
  if ((network as unknown) === "full") {
    throw new SandboxError("unsupported", 'The network of an open sandbox can\'t become "full"', {
      hint: 'open another sandbox with network: "full"',
    });
  }
  if (driver.setNetwork === undefined || driver.capabilities.liveNetwork !== true) {
    const why = reasonFor("liveNetwork", driver.capabilities);
    throw new SandboxError("unsupported", `The ${driver.backend} backend can't change the network of a sandbox${why}`);
  }
  const changed = await driver.setNetwork(network);
  changeEnv(env, changed.env, own);
}

/** Replaces the secrets of an open sandbox. Commands that start from now on get their variables. */
export async function setSecrets(
  { driver, env }: OpenSandboxState,
  secrets: Readonly<Record<string, SecretRule>>,
  signal: AbortSignal,
  own: Readonly<Record<string, string>> = {},
): Promise<void> {
  check(secrets, secretsSchema, "secrets");
  assertVariables(secrets, own);
  assertCapabilities({ secrets }, driver.capabilities, driver.backend);
  if (driver.setSecrets === undefined) {
    throw new SandboxError("unsupported", `The ${driver.backend} backend has no setSecrets`);
  }
  const changed = await driver.setSecrets(secrets, signal);
  for (const name of changed.gone) delete (env as Record<string, string>)[name];
  changeEnv(env, changed.env, own);
}

/** In place: every handle of the sandbox has the same object. */
function changeEnv(
  env: Readonly<Record<string, string>>,
  changed: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string>>,
): void {
  for (const [name, value] of Object.entries(changed)) {
    if (own[name] === undefined) (env as Record<string, string>)[name] = value;
  }
}
