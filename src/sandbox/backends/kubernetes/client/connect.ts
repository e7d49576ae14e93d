import { KubeClient } from "./kube-client.js";
import { type ClusterChoice, findCluster } from "./kubeconfig.js";

/** Makes a client of the cluster that the options and the environment name. Makes no request. */
export async function connectCluster(choice: ClusterChoice = {}): Promise<KubeClient> {
  return new KubeClient(await findCluster(choice));
}
