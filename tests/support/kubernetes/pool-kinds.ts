import { vi } from "vitest";
import { AgentSandbox, type Found, type PoolKind, type PoolObjects } from "./agent-sandbox.js";
import { api, callApi } from "./cluster.js";

const PATHS: Readonly<Record<PoolKind, string>> = {
  SandboxTemplate: "apis/extensions.agents.x-k8s.io/v1beta1/*/sandboxtemplates",
  SandboxWarmPool: "apis/extensions.agents.x-k8s.io/v1beta1/*/sandboxwarmpools",
  SandboxClaim: "apis/extensions.agents.x-k8s.io/v1beta1/*/sandboxclaims",
  Sandbox: "apis/agents.x-k8s.io/v1beta1/*/sandboxes",
  Pod: "api/v1/*/pods",
  NetworkPolicy: "apis/networking.k8s.io/v1/*/networkpolicies",
};
const text = { type: "string" };
const anything = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
const object = (properties: object, required: readonly string[] = []): object => ({
  type: "object",
  properties,
  ...(required.length > 0 && { required }),
});
const named = object({ name: text }, ["name"]);

/** What a claim, a pool, a template and a Sandbox may have, as far as we and the controller use it. */
const SPECS: Readonly<Record<string, object>> = {
  sandboxclaims: object(
    {
      warmPoolRef: named,
      lifecycle: object({
        shutdownPolicy: { type: "string", enum: ["Delete", "DeleteForeground", "Retain"], default: "Retain" },
        shutdownTime: { type: "string", format: "date-time" },
        ttlSecondsAfterFinished: { type: "integer", minimum: 0 },
      }),
    },
    ["warmPoolRef"],
  ),
  sandboxwarmpools: object(
    {
      replicas: { type: "integer", minimum: 0, default: 1 },
      sandboxTemplateRef: named,
      updateStrategy: object({ type: { type: "string", enum: ["Recreate", "OnReplenish"] } }),
    },
    ["sandboxTemplateRef"],
  ),
  sandboxtemplates: object(
    {
      podTemplate: anything,
      networkPolicyManagement: { type: "string", enum: ["Managed", "Unmanaged"], default: "Managed" },
    },
    ["podTemplate"],
  ),
  sandboxes: object({ podTemplate: anything, operatingMode: text }, ["podTemplate"]),
};

/** Defines the kinds of agent-sandbox in the cluster until it is disposed. */
export async function definePoolKinds(): Promise<AsyncDisposable> {
  const definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const names: string[] = [];
  for (const [kind, path] of Object.entries(PATHS).filter(([, each]) => each.includes("agents.x-k8s.io"))) {
    const [, group = "", , , plural = ""] = path.split("/");
    const schema = { openAPIV3Schema: object({ spec: SPECS[plural], status: anything }, ["spec"]) };
    const version = { name: "v1beta1", served: true, storage: true, schema, subresources: { status: {} } };
    const own = { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() };
    const metadata = { name: `${plural}.${group}` };
    await api("POST", definitions, { metadata, spec: { group, scope: "Namespaced", names: own, versions: [version] } });
    names.push(metadata.name);
    await vi.waitUntil(async () => (await callApi("GET", pathOf(kind as PoolKind, "default"))).status === 200, {
      timeout: 60_000,
    });
  }
  return {
    async [Symbol.asyncDispose]() {
      for (const name of names) await api("DELETE", `${definitions}/${name}`);
    },
  };
}

/** Plays the controllers of agent-sandbox in a namespace of the cluster. */
export function runPoolController(namespace: string): AgentSandbox {
  const objects: PoolObjects = {
    async list(kind) {
      const found = (await api("GET", pathOf(kind, namespace))) as { apiVersion: string; items: Found[] };
      return found.items.map((each) => ({ ...each, apiVersion: found.apiVersion, kind }));
    },
    create: async (kind, body) => void (await api("POST", pathOf(kind, namespace), { ...body, ...typeOf(kind) })),
    async change(kind, name, { status, ...fields }) {
      const path = `${pathOf(kind, namespace)}/${name}`;
      if (Object.keys(fields).length > 0) await api("PATCH", path, fields);
      if (status !== undefined) await api("PATCH", `${path}/status`, { status });
    },
    remove: async (kind, name) => void (await api("DELETE", `${pathOf(kind, namespace)}/${name}`)),
  };
  return new AgentSandbox(objects, 100);
}

/** The path of a collection. */
export function pathOf(kind: PoolKind, namespace: string): string {
  return `/${PATHS[kind].replace("*", `namespaces/${namespace}`)}`;
}

/** What an object of a kind begins with. */
function typeOf(kind: PoolKind): { apiVersion: string; kind: string } {
  const [root, group = "", version] = PATHS[kind].split("/");
  return { apiVersion: root === "api" ? group : `${group}/${version}`, kind };
}
