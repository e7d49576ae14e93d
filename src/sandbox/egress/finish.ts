import type { ClientStream } from "./client-stream.js";
import type { Lifetime } from "./lifetime.js";

/**
 * Ends a connection after its last answer. Cutting it with unread bytes would reset it and lose the answer, so the program gets a moment to see
 * the end and close its half.
 */
export async function finish(client: ClientStream, life: Lifetime, linger: number): Promise<void> {
  await client.end();
  await life.within(drain(client), linger, () => new Error("the program goes on sending"));
}

async function drain(client: ClientStream): Promise<void> {
  while ((await client.read()) !== undefined);
}
