import type { Resource } from "../../../../contracts/backend.js";
import { SandboxError } from "../../../../contracts/errors.js";
import { connect, type Daytona } from "./client.js";
import { isPassing, persist, statusOf, toFailure } from "./failure.js";
import { type Account, readAccount } from "./options.js";

/** A resource at the service that a record names. */
export interface RemoteResource extends Resource {
  readonly kind: "daytona-sandbox" | "daytona-snapshot";
  readonly name: string;
  readonly apiUrl: string;
  readonly target: string;
}

const DELETE_SECONDS = 120;
/** Keys are never written down: what this process made, it removes with the account that made it. */
const accounts = new Map<string, Account>();

/** Describes a resource before it is made. */
export function remoteResource(kind: RemoteResource["kind"], name: string, account: Account): RemoteResource {
  accounts.set(name, account);
  return { kind, name, apiUrl: account.apiUrl, target: account.target };
}

/** Removes what a record names. No error if it is absent. */
export async function removeResource(resource: Resource): Promise<void> {
  const { kind, name, apiUrl, target } = resource as RemoteResource;
  if (kind !== "daytona-sandbox" && kind !== "daytona-snapshot") {
    throw new SandboxError("unsupported", `The daytona backend has no resources of kind "${String(kind)}"`);
  }
  const account = accounts.get(name) ?? readAccount({ daytona: { apiUrl, target } });
  const { client, close } = await connect(account);
  try {
    if (kind === "daytona-sandbox") await deleteSandbox(client, name);
    else await deleteSnapshot(client, name);
    accounts.delete(name);
  } finally {
    await close();
  }
}

/** Deletes a sandbox and waits until it is gone. */
async function deleteSandbox(client: Daytona, name: string): Promise<void> {
  try {
    const remote = await persist(() => client.get(name));
    // 409: it is changing its state.
    await persist(
      () => remote.delete(DELETE_SECONDS, true),
      (error) => isPassing(error) || statusOf(error) === 409,
      DELETE_SECONDS * 1_000,
    );
  } catch (error) {
    if (statusOf(error) !== 404) throw toFailure(error, `sandbox ${name} could not be deleted`);
  }
}

async function deleteSnapshot(client: Daytona, name: string): Promise<void> {
  try {
    await persist(() => client.snapshot.delete(name));
  } catch (error) {
    if (statusOf(error) !== 404) throw toFailure(error, `snapshot ${name} could not be deleted`);
  }
}
