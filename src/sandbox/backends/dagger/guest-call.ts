import { randomBytes } from "node:crypto";
import { GuestChannel } from "../../guest.js";
import type { Session } from "./session.js";

/** Name of this process in the containers that it makes. */
export const HOST_ALIAS = "glovebox-host";
/** Where the guest lies in them. */
export const GUEST_PATH = "/.glovebox/guest";
/**
 * The variable by which a container knows the number that its guest calls with. The number opens one connection, and the guest
 * has made it before a command can run.
 */
export const CALL_NUMBER = "GLOVEBOX_STEP";
/** An engine that has much to do needs a while to start a container. */
export const START_LIMIT = 120_000;

/**
 * The guest is process 1 of its container. A command cannot kill it there, and no process of the engine keeps a copy of its
 * environment.
 */
export const AS_FIRST_PROCESS = { noInit: true } as const;

/** A number that nobody can guess. An engine does not run again what it has seen, so each step also needs one of its own. */
export function newNumber(): string {
  return randomBytes(24).toString("hex");
}

/** What an engine runs so that a guest in a container calls this process; secrets are names of variables. */
export function callingCommand({ listener }: Session, workDir: string, secrets: readonly string[]): string[] {
  return [GUEST_PATH, "dial", HOST_ALIAS, String(listener.port), workDir, ...secrets];
}

/** Waits until the guest with this number has called and can be told what to do. */
export async function receiveGuest({ listener }: Session, number: string, signal: AbortSignal): Promise<GuestChannel> {
  const socket = await listener.expect(number, AbortSignal.any([signal, AbortSignal.timeout(START_LIMIT)]));
  const channel = new GuestChannel(socket);
  socket.resume();
  await channel.hello;
  return channel;
}
