import { createLimit } from "../../../util/limit.js";
import type { KubeCall, KubeClient } from "./client/kube-client.js";
import { KubeError } from "./client/kube-error.js";
import { ACCESS_REVIEWS } from "./client/resources.js";

/** What we must be allowed to do with one kind of object in the namespace. */
export interface Right {
  readonly group: string;
  /** With its subresource, such as `pods/exec`. */
  readonly resource: string;
  readonly verbs: readonly string[];
  /** What does not work without it. Absent: nothing does. */
  readonly only?: string;
  readonly isClusterWide?: true;
}

/** Everything that the backend asks the cluster to do. */
export const RIGHTS: readonly Right[] = [
  { group: "batch", resource: "jobs", verbs: ["create", "get", "list", "delete"] },
  { group: "", resource: "pods", verbs: ["get", "list", "watch"] },
  // Since 1.35 a WebSocket needs both; before, `get` was enough.
  { group: "", resource: "pods/exec", verbs: ["get", "create"] },
  { group: "", resource: "configmaps", verbs: ["get", "create"] },
  { group: "networking.k8s.io", resource: "networkpolicies", verbs: ["get", "list", "create", "patch"] },
  {
    group: "networking.k8s.io",
    resource: "networkpolicies",
    verbs: ["delete"],
    only: "tasks with services, which have a policy of their own",
  },
  { group: "", resource: "events", verbs: ["list"], only: "the reason why a pod can't be made or was taken away" },
  { group: "", resource: "nodes", verbs: ["get"], only: "noticing a lost node early", isClusterWide: true },
];

/** What a warm pool needs besides. */
export const WARM_RIGHTS: readonly Right[] = [
  {
    group: "extensions.agents.x-k8s.io",
    resource: "sandboxclaims",
    verbs: ["create", "list", "watch", "patch", "delete"],
  },
  { group: "extensions.agents.x-k8s.io", resource: "sandboxwarmpools", verbs: ["get"] },
  { group: "agents.x-k8s.io", resource: "sandboxes", verbs: ["get"] },
  {
    group: "extensions.agents.x-k8s.io",
    resource: "sandboxtemplates",
    verbs: ["get"],
    only: "comparing the warm pool with your configuration",
  },
];

const AT_ONCE = 6;

/** Asks the cluster about each verb, and returns those rights that are missing, with only their missing verbs. */
export async function missingRights(
  client: KubeClient,
  rights: readonly Right[],
  call: KubeCall = {},
): Promise<Right[]> {
  const limit = createLimit(AT_ONCE);
  const checked = await Promise.all(
    rights.map(async (right) => {
      const allowed = await Promise.all(right.verbs.map((verb) => limit(() => isAllowed(client, right, verb, call))));
      return { ...right, verbs: right.verbs.filter((_, index) => !allowed[index]) };
    }),
  );
  return checked.filter(({ verbs }) => verbs.length > 0);
}

async function isAllowed(client: KubeClient, right: Right, verb: string, call: KubeCall): Promise<boolean> {
  const { group, isClusterWide } = right;
  const [resource, subresource] = right.resource.split("/");
  const { namespace } = client.access;
  const place = isClusterWide === true ? {} : { namespace };
  const resourceAttributes = { ...place, verb, group, resource, ...(subresource !== undefined && { subresource }) };
  const body = { apiVersion: ACCESS_REVIEWS.api, kind: "SelfSubjectAccessReview", spec: { resourceAttributes } };
  const { status } = await client.create<AccessReview>(ACCESS_REVIEWS, { namespace }, body, call);
  return status?.allowed === true;
}

interface AccessReview {
  metadata: { name: string };
  status?: { allowed?: boolean };
}

/** Who the cluster takes us for: it says so when it refuses something. Undefined if it refuses nothing. */
export async function ownName(client: KubeClient, call: KubeCall = {}): Promise<string | undefined> {
  try {
    await client.call(
      { method: "GET", path: `/apis/glovebox.invalid/v1/namespaces/${client.access.namespace}/none` },
      call,
    );
  } catch (error) {
    if (error instanceof KubeError && error.status === 403) return /User "([^"]+)"/.exec(error.message)?.[1];
    if (!(error instanceof KubeError) || error.status !== 404) throw error;
  }
  return undefined;
}

/** What an administrator applies to give a user these rights. */
export function roleManifest(namespace: string, rights: readonly Right[], user: string | undefined): string {
  const own = rights.filter(({ isClusterWide }) => isClusterWide !== true);
  const wide = rights.filter(({ isClusterWide }) => isClusterWide === true);
  const documents = [
    ...(own.length > 0 ? [role("Role", own, namespace), binding("Role", namespace, user)] : []),
    ...(wide.length > 0 ? [role("ClusterRole", wide), binding("ClusterRole", namespace, user)] : []),
  ];
  return documents.join("---\n");
}

type RoleKind = "Role" | "ClusterRole";

function role(kind: RoleKind, rights: readonly Right[], namespace?: string): string {
  return [
    "apiVersion: rbac.authorization.k8s.io/v1",
    `kind: ${kind}`,
    "metadata:",
    "  name: glovebox",
    ...(namespace === undefined ? [] : [`  namespace: ${namespace}`]),
    "rules:",
    ...rights.flatMap(({ group, resource, verbs }) => [
      `  - apiGroups: ["${group}"]`,
      `    resources: ["${resource}"]`,
      `    verbs: [${verbs.map((verb) => `"${verb}"`).join(", ")}]`,
    ]),
    "",
  ].join("\n");
}

function binding(kind: RoleKind, namespace: string, user = "<your user>"): string {
  const [, accountNamespace, account] = /^system:serviceaccount:([^:]+):([^:]+)$/.exec(user) ?? [];
  const subject =
    account === undefined
      ? ["  - kind: User", `    name: ${JSON.stringify(user)}`, "    apiGroup: rbac.authorization.k8s.io"]
      : ["  - kind: ServiceAccount", `    name: ${account}`, `    namespace: ${accountNamespace}`];
  return [
    "apiVersion: rbac.authorization.k8s.io/v1",
    `kind: ${kind}Binding`,
    "metadata:",
    "  name: glovebox",
    ...(kind === "Role" ? [`  namespace: ${namespace}`] : []),
    "subjects:",
    ...subject,
    "roleRef:",
    "  apiGroup: rbac.authorization.k8s.io",
    `  kind: ${kind}`,
    "  name: glovebox",
    "",
  ].join("\n");
}
