import { HOME_PATH, hasOwnDirectories, type PodPlan } from "./manifests/job.js";

const DEFAULTS: Readonly<Record<string, string>> = {
  PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
  LANG: "C.UTF-8",
};
/** What the kubelet adds, for every pod, and the guest for us. Nobody in a sandbox needs to know where the cluster's API is. */
const CLUSTERS_OWN = /^(KUBERNETES_|HOSTNAME$|PWD$)/;

/** The environment that commands start from: that of the container, without what the cluster adds. */
export function baseEnvOf(container: Readonly<Record<string, string>>, plan: PodPlan): Record<string, string> {
  const own = Object.entries(container).filter(
    ([name]) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name) && !CLUSTERS_OWN.test(name),
  );
  return { ...DEFAULTS, ...Object.fromEntries(own), ...(hasOwnDirectories(plan) && { HOME: HOME_PATH }) };
}
