import type { RemoteSandboxInfo } from "../../../../contracts/backend.js";
import { connect } from "./client.js";
import { toFailure } from "./failure.js";
import { MARK, readLabels } from "./labels.js";
import { readAccount } from "./options.js";
import { remoteResource, removeResource } from "./remove.js";

/** Our sandboxes at the service, found by their label. */
export async function listRemote(): Promise<RemoteSandboxInfo[]> {
  if (!process.env["DAYTONA_API_KEY"]) return [];
  const account = readAccount({});
  const { client, close } = await connect(account);
  const found: RemoteSandboxInfo[] = [];
  try {
    for await (const { name, labels, createdAt, state } of client.list({ labels: { ...MARK } })) {
      const read = readLabels(labels);
      // The list lags behind: it still contains sandboxes that are being deleted.
      if (read === undefined || state === "destroying" || state === "destroyed") continue;
      const remove = (): Promise<void> => removeResource(remoteResource("daytona-sandbox", name, account));
      found.push({ ...read, remove, ...(createdAt && { createdAt }) });
    }
    return found;
  } catch (error) {
    throw toFailure(error, "the sandboxes could not be listed");
  } finally {
    await close();
  }
}
