import { randomInt } from "node:crypto";
import type { NetworkRequest } from "../../../../../contracts/container-engine.js";
import { SandboxError } from "../../../../../contracts/errors.js";
import type { Engine } from "./engine.js";
import { EngineError } from "./engine-error.js";

/** Reserved for measurements between devices (RFC 2544): neither the internet nor a private network has addresses there. */
const POOL = 198 * 2 ** 24 + 18 * 2 ** 16;
const POOL_BITS = 17;
const ATTEMPTS = 64;
/** Without it the host has an address on an internal network and can be reached by it. */
const NO_ADDRESS_OF_HOST = "com.docker.network.bridge.inhibit_ipv4";

/**
 * Creates a network with a small address range and returns its id. The ranges that the engine chooses are so large that
 * there are only thirty of them.
 */
export async function createNetwork(engine: Engine, plan: NetworkRequest, signal?: AbortSignal): Promise<string> {
  const bits = Math.max(4, Math.ceil(Math.log2(plan.members + 3)));
  const slots = 2 ** (POOL_BITS - bits);
  let last: unknown;
  const start = randomInt(slots);
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    signal?.throwIfAborted();
    // Not the next slot: those in use are close together.
    const slot = (start + attempt * 2_654_435_761) % slots;
    const first = POOL + slot * 2 ** bits;
    const range = { Subnet: `${toAddress(first)}/${32 - bits}`, Gateway: toAddress(first + 1) };
    try {
      // Without the signal: the engine would still create the network, after the clean-up has looked for it.
      const made = await engine.call<Created>("POST", "/networks/create", { body: toBody(plan, range) });
      await assertHostKeptOut(engine, made);
      return made.Id;
    } catch (error) {
      if (!(error instanceof EngineError) || !/overlaps with other one/.test(error.message)) throw error;
      last = error;
    }
  }
  throw new SandboxError("limit_exceeded", `No address range is free for the network ${plan.name}`, {
    backend: "docker",
    cause: last,
    hint: "docker network prune removes unused networks",
  });
}

interface Created {
  readonly Id: string;
  readonly Warning?: string;
}

/** Podman makes a network without an option that it does not know, and says so. */
async function assertHostKeptOut(engine: Engine, { Id, Warning = "" }: Created): Promise<void> {
  if (!Warning.includes(NO_ADDRESS_OF_HOST)) return;
  await engine.call("DELETE", `/networks/${Id}`);
  throw new SandboxError("unsupported", `The engine can't keep containers from the host: ${Warning}`, {
    backend: "docker",
    hint: "use Docker itself, or open the network with networkEnabled: true",
  });
}

/**
 * The gateway is what the engine would choose. Unless it is given, an engine older than 24.0 that is killed while it removes the network never starts
 * again (moby/moby#45057).
 */
interface AddressRange {
  readonly Subnet: string;
  readonly Gateway: string;
}

function toBody({ name, internal, labels }: NetworkRequest, range: AddressRange): object {
  return {
    Name: name,
    CheckDuplicate: true,
    Driver: "bridge",
    Internal: internal,
    EnableIPv6: false,
    Labels: labels,
    IPAM: { Config: [range] },
    Options: internal ? { [NO_ADDRESS_OF_HOST]: "true" } : {},
  };
}

function toAddress(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
}
