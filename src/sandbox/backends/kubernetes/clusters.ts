import { delimiter, resolve } from "node:path";
import { connectCluster } from "./client/connect.js";
import type { KubeClient } from "./client/kube-client.js";
import { type ClusterChoice, homeConfig } from "./client/kubeconfig.js";

const clients = new Map<string, Promise<KubeClient>>();

/** The client of a cluster, one for all sandboxes of this process. Makes no request. */
export async function clusterOf({ kubeconfig, context, namespace }: ClusterChoice): Promise<KubeClient> {
  const { KUBECONFIG = "", HOME = "" } = process.env;
  const key = JSON.stringify([kubeconfig, context, namespace, KUBECONFIG, HOME]);
  const known = clients.get(key) ?? connectCluster({ kubeconfig, context, namespace });
  clients.set(key, known);
  try {
    return await known;
  } catch (error) {
    // The next one may find what was missing.
    clients.delete(key);
    throw error;
  }
}

/** The same choice for a process with another directory, environment or current context. */
export function lastingChoice(choice: ClusterChoice, { access }: KubeClient): ClusterChoice {
  const isOfFile = access.name !== "in-cluster";
  const path = choice.kubeconfig ?? (process.env["KUBECONFIG"] || (isOfFile ? homeConfig() : undefined));
  return {
    ...(path !== undefined && !path.includes(delimiter) && { kubeconfig: resolve(path) }),
    ...(isOfFile && { context: access.name }),
    namespace: access.namespace,
  };
}
