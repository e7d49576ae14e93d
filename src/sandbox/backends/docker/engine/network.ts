import { randomInt } from "node:crypto";
import type { NetworkRequest } from "../../../../../contracts/container-engine.js";
import { SandboxError } from "../../../../../contracts/errors.js";
import type { Engine } from "./engine.js";
import { EngineError } from "./engine-error.js";

/** Reserved for measurements between devices (RFC 2544): neither the internet nor a private network has addresses there. */
const POOL = 198 * 2 ** 24 + 18 * 2 ** 16;
const POOL_BITS = 17;
const ATTEMPTS = 64;

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
    const subnet = `${toAddress(POOL + slot * 2 ** bits)}/${32 - bits}`;
    try {
      // Without the signal: the engine would still create the network, after the clean-up has looked for it.
      return (await engine.call<{ Id: string }>("POST", "/networks/create", { body: toBody(plan, subnet) })).Id;
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

function toBody({ name, internal, labels }: NetworkRequest, subnet: string): object {
  return {
    Name: name,
    CheckDuplicate: true,
    Driver: "bridge",
    Internal: internal,
    EnableIPv6: false,
    Labels: labels,
    IPAM: { Config: [{ Subnet: subnet }] },
    // Otherwise the host has an address on an internal network and can be reached by it.
    Options: internal ? { "com.docker.network.bridge.inhibit_ipv4": "true" } : {},
  };
}

function toAddress(value: number): string {
  return [24, 16, 8, 0].map((shift) => Math.floor(value / 2 ** shift) % 256).join(".");
}
