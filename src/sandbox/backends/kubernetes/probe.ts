import type { ProbeOptions } from "../../../../contracts/backend.js";
import { type SandboxError, toSandboxError } from "../../../../contracts/errors.js";
import type { Finding } from "../../../../contracts/finding.js";
import type { SandboxOptions } from "../../types.js";
import type { KubeClient } from "./client/kube-client.js";
import { hasStatus } from "./client/kube-error.js";
import { NAMESPACES, type ObjectMeta } from "./client/resources.js";
import { clusterOf } from "./clusters.js";
import { ensureIsolation, whenProven } from "./isolation.js";
import { ensureGuest } from "./manifests/guest-config-map.js";
import { architectureOf } from "./manifests/job.js";
import { imageOf } from "./options.js";
import { missingRights, ownName, RIGHTS, type Right, roleManifest, WARM_RIGHTS } from "./rights.js";
import { probePool } from "./warm/probe-pool.js";

/** Milliseconds for each request. */
const PATIENCE = 5_000;
/** From this version on, a cluster removes a Job that has ended without being told to in its own settings. */
const CLEANS_UP = 23;

/** Checks the cluster: whether it answers, what we may do there, whether it enforces network policies. */
export async function probeKubernetes({ options = {}, isThorough = false }: ProbeOptions = {}): Promise<Finding[]> {
  const { kubeconfig, context, namespace } = options.kubernetes ?? {};
  let client: KubeClient;
  try {
    client = await clusterOf({ kubeconfig, context, namespace });
  } catch (error) {
    return [missing("cluster", error)];
  }
  try {
    const reached = await reach(client);
    const { warmPool } = options.kubernetes ?? {};
    const wanted = warmPool === undefined ? RIGHTS : [...RIGHTS, ...WARM_RIGHTS];
    const [namespace, rights] = await Promise.all([checkNamespace(client), checkRights(client, wanted)]);
    const mayTry = isThorough && ![namespace, rights].some(({ status }) => status === "missing");
    const policies = mayTry ? await tryPolicies(client, options) : await recallProof(client);
    const pool = warmPool === undefined ? [] : [await checkPool(client, warmPool, options)];
    return [...reached, namespace, rights, policies, ...pool];
  } catch (error) {
    return [missing("cluster", error)];
  }
}

async function reach(client: KubeClient): Promise<Finding[]> {
  const { access } = client;
  const version = await client.call<{ gitVersion?: string; major?: string; minor?: string }>(
    { method: "GET", path: "/version" },
    { timeout: PATIENCE },
  );
  const detail = `Kubernetes ${version.gitVersion} at ${access.server.origin} (${access.name})`;
  const minor = Number.parseInt(version.minor ?? "", 10);
  const isOld = version.major === "1" && minor < CLEANS_UP;
  const fix = "upgrade to 1.23, or switch on the feature gate TTLAfterFinished: older ones keep Jobs that have ended";
  const insecure: Finding = {
    name: "TLS",
    status: "limited",
    detail: "the certificate of the server is not checked: whoever is in between can read and change everything",
    fix: "remove insecure-skip-tls-verify from the kubeconfig, and set certificate-authority",
  };
  return [
    { name: "cluster", status: isOld ? "limited" : "ok", detail, ...(isOld && { fix }) },
    ...(access.isVerified || access.server.protocol === "http:" ? [] : [insecure]),
  ];
}

async function checkNamespace(client: KubeClient): Promise<Finding> {
  const { namespace } = client.access;
  const name = "namespace";
  try {
    const { metadata } = await client.get<{ metadata: ObjectMeta }>(
      NAMESPACES,
      { namespace, name: namespace },
      { timeout: PATIENCE },
    );
    const standard = metadata.labels?.["pod-security.kubernetes.io/enforce"];
    return {
      name,
      status: "ok",
      detail: standard === undefined ? namespace : `${namespace}, pod security ${standard}`,
    };
  } catch (error) {
    // Many users may not look at namespaces.
    if (hasStatus(error, 403)) return { name, status: "ok", detail: `${namespace} (whether it exists can't be seen)` };
    return missing(name, error);
  }
}

async function checkRights(client: KubeClient, wanted: readonly Right[]): Promise<Finding> {
  const name = "rights";
  let lacking: Awaited<ReturnType<typeof missingRights>>;
  try {
    lacking = await missingRights(client, wanted, { timeout: PATIENCE });
  } catch (error) {
    return missing(name, error);
  }
  const count = wanted.reduce((sum, { verbs }) => sum + verbs.length, 0);
  if (lacking.length === 0)
    return { name, status: "ok", detail: `all ${count} in the namespace ${client.access.namespace}` };
  const said = lacking.map(
    ({ resource, verbs, only }) => `${verbs.join("/")} ${resource}${only === undefined ? "" : ` (only for ${only})`}`,
  );
  const user = await ownName(client, { timeout: PATIENCE }).catch(() => undefined);
  return {
    name,
    status: lacking.every(({ only }) => only !== undefined) ? "limited" : "missing",
    detail: `${user ?? "this user"} may not ${said.join(", ")}`,
    fix: "an administrator applies the manifest: kubectl apply -f <file>",
    manifest: roleManifest(client.access.namespace, wanted, user),
  };
}

async function checkPool(client: KubeClient, pool: string, options: SandboxOptions): Promise<Finding> {
  try {
    return await probePool(client, pool, options, { timeout: PATIENCE });
  } catch (error) {
    return { ...missing("warm pool", error), status: "limited" };
  }
}

/** Opens pods, which takes seconds. */
async function tryPolicies(client: KubeClient, options: SandboxOptions): Promise<Finding> {
  const { kubernetes: own = {} } = options;
  const name = "network policies";
  try {
    const guest = await ensureGuest(client, architectureOf(own));
    const image = imageOf(options);
    await ensureIsolation(client, "none", { namespace: client.access.namespace, image, guest, options: own });
    return { name, status: "ok", detail: "enforced, as pods that tried to reach each other have shown" };
  } catch (error) {
    return { ...missing(name, error), status: "limited" };
  }
}

async function recallProof(client: KubeClient): Promise<Finding> {
  const name = "network policies";
  const proven = await whenProven(client, "none", { timeout: PATIENCE }).catch(() => undefined);
  if (proven === undefined) {
    return { name, status: "unused", detail: "not tried yet; glovebox doctor kubernetes starts pods that try" };
  }
  return { name, status: "ok", detail: `enforced, as was shown at ${proven}` };
}

function missing(name: string, error: unknown): Finding {
  const { message, hint }: SandboxError = toSandboxError(error);
  return { name, status: "missing", detail: message, ...(hint !== undefined && { fix: hint }) };
}
