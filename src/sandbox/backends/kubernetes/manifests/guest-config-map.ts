import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { SandboxError } from "../../../../../contracts/errors.js";
import { guestBinary } from "../../../guest.js";
import type { KubeCall, KubeClient } from "../client/kube-client.js";
import { hasStatus } from "../client/kube-error.js";
import { CONFIG_MAPS, type KubeObject } from "../client/resources.js";
import { MANAGED, SHARED_LABEL } from "../labels.js";

/** The key of the program in the ConfigMap, and its name in the pod. */
export const PROGRAM = "glovebox-guest";
/** What a ConfigMap can contain. */
const MOST_BYTES = 1 << 20;

/** Machines by the names that Kubernetes has for them. */
export const ARCHITECTURES: Readonly<Record<string, string>> = { amd64: "x64", arm64: "arm64" };

interface ConfigMap extends KubeObject {
  binaryData?: Record<string, string>;
}

const ensured = new WeakMap<KubeClient, Map<string, Promise<string>>>();

/**
 * Makes sure that the namespace has the guest, and returns the name of its ConfigMap, which contains the hash of the program: another version gets
 * another object, and pods that run keep theirs. Asks the cluster once per client.
 */
export async function ensureGuest(client: KubeClient, architecture: string, call: KubeCall = {}): Promise<string> {
  const known = ensured.get(client) ?? new Map<string, Promise<string>>();
  ensured.set(client, known);
  const found = known.get(architecture);
  if (found !== undefined) {
    try {
      return await found;
    } catch (error) {
      // Whoever asked gave up; that is no answer for the others.
      const isOnlyTheirs = error instanceof SandboxError && error.code === "aborted";
      if (!isOnlyTheirs || call.signal?.aborted === true) throw error;
      return await ensureGuest(client, architecture, call);
    }
  }
  const made = put(client, architecture, call);
  known.set(architecture, made);
  made.catch(() => known.delete(architecture));
  return await made;
}

/** Forgets that a namespace has the guest: somebody has removed it. */
export function forgetGuest(client: KubeClient): void {
  ensured.delete(client);
}

/** The name of the ConfigMap with the guest, whether or not it is there. */
export function guestName(architecture: string): string {
  return readGuest(architecture).name;
}

async function put(client: KubeClient, architecture: string, call: KubeCall): Promise<string> {
  const { name, program } = readGuest(architecture);
  const place = { namespace: client.access.namespace, name };
  if (await isThere(client, place, program, call)) return name;
  const labels = { ...MANAGED, [SHARED_LABEL]: "guest" };
  const body = { metadata: { name, labels }, immutable: true, binaryData: { [PROGRAM]: program.toString("base64") } };
  try {
    await client.create(CONFIG_MAPS, { namespace: place.namespace }, body, call);
  } catch (error) {
    // Another process was faster.
    if (!hasStatus(error, 409) || !(await isThere(client, place, program, call))) throw error;
  }
  return name;
}

function readGuest(architecture: string): { name: string; program: Buffer } {
  const machine = ARCHITECTURES[architecture];
  if (machine === undefined) {
    throw new SandboxError("unsupported", `There is no guest for nodes of the architecture ${architecture}`, {
      backend: "kubernetes",
      hint: `use nodes of ${Object.keys(ARCHITECTURES).join(" or ")}: kubernetes: { nodeSelector: { "kubernetes.io/arch": "amd64" } }`,
    });
  }
  const program = readFileSync(guestBinary(machine));
  if (program.length > MOST_BYTES - 1_024) {
    throw new SandboxError("internal", `The guest has ${program.length} bytes; a ConfigMap can't contain it`);
  }
  const hash = createHash("sha256").update(program).digest("hex").slice(0, 16);
  return { name: `${PROGRAM}-${architecture}-${hash}`, program };
}

async function isThere(
  client: KubeClient,
  place: { namespace: string; name: string },
  program: Buffer,
  call: KubeCall,
): Promise<boolean> {
  const found = await client.find<ConfigMap>(CONFIG_MAPS, place, call);
  if (found === undefined) return false;
  if (Buffer.from(found.binaryData?.[PROGRAM] ?? "", "base64").equals(program)) return true;
  throw new SandboxError(
    "tampered",
    `The ConfigMap ${place.name} is not the guest of this version: somebody has changed it`,
    {
      backend: "kubernetes",
      hint: `kubectl delete configmap ${place.name} --namespace ${place.namespace}`,
    },
  );
}
