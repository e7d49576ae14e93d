import { randomBytes } from "node:crypto";
import { GuestChannel } from "../../guest.js";
import type { Session } from "./session.js";

/** Host name of this process in the containers that it makes. */
export const HOST_ALIAS = "glovebox-host";
/** Path of the guest in them. */
export const GUEST_PATH = "/.glovebox/guest";
/** The variable with the number that a guest calls with. It opens one connection, made before any command runs. */
export const CALL_NUMBER = "GLOVEBOX_STEP";
/** A busy engine takes a while to start a container. */
export const START_LIMIT = 120_000;

/** Makes the guest process 1 of its container: there a command can't kill it, and no process of the engine has a copy of its environment. */
export const AS_FIRST_PROCESS = { noInit: true } as const;

/** A number that nobody can guess. An engine does not run the same step twice, so each step also needs its own. */
export function newNumber(): string {
  return randomBytes(24).toString("hex");
}

/** The command with which the guest in a container calls this process; secrets are names of variables. */
export function callingCommand({ listener }: Session, workDir: string, secrets: readonly string[]): string[] {
  return [GUEST_PATH, "dial", HOST_ALIAS, String(listener.port), workDir, ...secrets];
}

/** Waits until the guest with this number has called and accepts requests. */
export async function receiveGuest({ listener }: Session, number: string, signal: AbortSignal): Promise<GuestChannel> {
  const socket = await listener.expect(number, AbortSignal.any([signal, AbortSignal.timeout(START_LIMIT)]));
  const channel = new GuestChannel(socket);
  socket.resume();
  await channel.hello;
  return channel;
}
