import { randomBytes } from "node:crypto";
import { AgentChannel } from "../agent/channel.js";
import type { Session } from "./session.js";

/** Name of this process in the containers that it makes. */
export const HOST_ALIAS = "glovebox-host";
/** Where the agent lies in them. */
export const AGENT_PATH = "/.glovebox/guest";
/**
 * The variable by which a container knows the number that its agent calls with. The number opens one connection, and the agent
 * has made it before a command can run.
 */
export const CALL_NUMBER = "GLOVEBOX_STEP";
/** An engine that has much to do needs a while to start a container. */
export const START_LIMIT = 120_000;

/**
 * The agent is process 1 of its container. A command cannot kill it there, and no process of the engine keeps a copy of its
 * environment.
 */
export const AS_FIRST_PROCESS = { noInit: true } as const;

/** A number that nobody can guess. An engine does not run again what it has seen, so each step also needs one of its own. */
export function newNumber(): string {
  return randomBytes(24).toString("hex");
}

/** What an engine runs so that an agent in a container calls this process; secrets are names of variables. */
export function callingCommand({ listener }: Session, workDir: string, secrets: readonly string[]): string[] {
  return [AGENT_PATH, "dial", HOST_ALIAS, String(listener.port), workDir, ...secrets];
}

/** Waits until the agent with this number has called and can be told what to do. */
export async function receiveAgent({ listener }: Session, number: string, signal: AbortSignal): Promise<AgentChannel> {
  const socket = await listener.expect(number, AbortSignal.any([signal, AbortSignal.timeout(START_LIMIT)]));
  const channel = new AgentChannel(socket);
  socket.resume();
  await channel.hello;
  return channel;
}
