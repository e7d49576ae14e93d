import type { Sandbox } from "../sandbox/types.js";
import type { Screen } from "./terminal.js";

/** A port of a sandbox, and its address on this machine. */
interface PublishedPort {
  readonly port: number;
  readonly url: string;
}

/** The addresses of the ports that a sandbox was opened with, now or when it was made. */
export async function publishedPorts(sandbox: Sandbox): Promise<PublishedPort[]> {
  return await Promise.all(sandbox.published.map(async (port) => ({ port, url: await sandbox.url(port) })));
}

/** Prints these addresses, one on each line of standard error. */
export async function printPublished(sandbox: Sandbox, screen: Screen): Promise<void> {
  for (const { port, url } of await publishedPorts(sandbox)) await screen.printNote(`${url} -> ${port}`);
}
