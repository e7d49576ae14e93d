import type { ClientStream } from "./client-stream.js";
import type { Lifetime } from "./lifetime.js";

/** Ends a connection after its last answer. The program gets a moment to close its half: a reset could lose the answer. */
export async function finish(client: ClientStream, life: Lifetime, linger: number): Promise<void> {
  await client.end();
  await life.within(drain(client), linger, () => new Error("the program goes on sending"));
}

async function drain(client: ClientStream): Promise<void> {
  while ((await client.read()) !== undefined);
}
