import type { Found, PoolKind, PoolObjects } from "../../support/kubernetes/agent-sandbox.js";
import type { Controllers } from "./controllers.js";
import { checkFields } from "./fields.js";
import { KINDS, type Kind } from "./kinds.js";
import { checkRules } from "./rules.js";
import type { Store } from "./store.js";

/** What a controller sees of a namespace of the fake. The pods that it makes are filled in as a server does. */
export function poolObjects(store: Store, controllers: Controllers, namespace: string): PoolObjects {
  const find = (kind: PoolKind, name: string): Found => store.find(kind, namespace, name);
  return {
    list: async (kind) => structuredClone(store.list(kind, namespace)),
    async create(kind, body: Found) {
      if (kind === "Pod" || kind === "NetworkPolicy") checkFields(kind, body);
      checkRules(kind, body);
      const filled = kind === "Pod" ? { ...body, spec: filledIn(body.spec), status: { phase: "Pending" } } : body;
      store.create(KINDS.find((each) => each.kind === kind) as Kind, namespace, filled);
    },
    async change(kind, name, fields) {
      const before = find(kind, name);
      if (before !== undefined) store.update(before, (copy) => merge(copy, fields));
    },
    async remove(kind, name) {
      const found = find(kind, name);
      if (found !== undefined) controllers.delete(found, "Background", undefined);
    },
  };
}

/** What a real server and its admission add to a pod. */
function filledIn(spec: Found): Found {
  const container = (each: Found): Found => ({
    terminationMessagePath: "/dev/termination-log",
    imagePullPolicy: "IfNotPresent",
    ...each,
    resources: each.resources && {
      requests: canonical(each.resources.requests),
      limits: canonical(each.resources.limits),
    },
  });
  const stay = (key: string): object => ({ key, operator: "Exists", effect: "NoExecute", tolerationSeconds: 300 });
  return {
    dnsPolicy: "ClusterFirst",
    schedulerName: "default-scheduler",
    ...spec,
    serviceAccountName: spec.serviceAccountName ?? "default",
    containers: spec.containers.map(container),
    tolerations: [
      ...(spec.tolerations ?? []),
      ...["not-ready", "unreachable"].map((name) => stay(`node.kubernetes.io/${name}`)),
    ],
  };
}

/** 1000m is 1. */
function canonical(resources: Readonly<Record<string, string>> = {}): Record<string, string> {
  const short = (text: string): string => text.replace(/^(\d+)000m$/, "$1");
  return Object.fromEntries(Object.entries(resources).map(([name, text]) => [name, short(text)]));
}

function merge(target: Found, fields: Found): void {
  for (const [key, value] of Object.entries(fields)) {
    const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
    if (value === null) delete target[key];
    else if (isObject) {
      target[key] ??= {};
      merge(target[key], value);
    } else target[key] = value;
  }
}
