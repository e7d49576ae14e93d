import type { ClientStream } from "./client-stream.js";
import type { Lifetime } from "./lifetime.js";

/**
 * Ends a connection after its last answer. Cutting it while something that was sent is unread would reset it, and the
 * answer would be lost; so the program has a moment to see the end and to close its half.
 */
export async function finish(client: ClientStream, life: Lifetime, linger: number): Promise<void> {
  await client.end();
  await life.within(drain(client), linger, () => new Error("the program goes on sending"));
}

async function drain(client: ClientStream): Promise<void> {
  while ((await client.read()) !== undefined);
}
