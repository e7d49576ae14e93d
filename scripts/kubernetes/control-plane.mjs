import { execFileSync } from "node:child_process";
import { join } from "node:path";

/** Of the machine that the control plane is on, in the network of the nodes. */
export const ADDRESS = "10.96.128.1";
/** Of the server's own service, which no one here can reach: nothing translates the addresses of services. */
export const SERVICE_ADDRESS = "10.98.0.1";
/** What runs here needs. */
const GATES = "--feature-gates=TTLAfterFinished=true";
/** Those that need a cloud, or a kube-proxy. */
const NO_CONTROLLERS = ["attachdetach", "cloud-node-lifecycle", "service", "route"];

/** Starts the store, the API server, the controllers and the scheduler. */
export function startControlPlane({ place, programs, credentials }) {
  const { folder, bin } = place;
  const { keys } = credentials;
  // In memory: a store that waits for the disk at each write makes everything slow.
  const store = join(folder, "etcd");
  execFileSync("sh", ["-ec", `mkdir ${store}; mount -t tmpfs -o mode=700 tmpfs ${store}`]);
  programs.start("etcd", [
    ...[bin("etcd"), "--data-dir", join(store, "data"), "--logger", "zap", "--log-level", "warn"],
    ...["--listen-client-urls", "http://127.0.0.1:2379", "--advertise-client-urls", "http://127.0.0.1:2379"],
    ...["--listen-peer-urls", "http://127.0.0.1:2380", "--initial-advertise-peer-urls", "http://127.0.0.1:2380"],
    ...["--initial-cluster", "default=http://127.0.0.1:2380"],
  ]);
  programs.start("kube-apiserver", [
    ...[bin("kube-apiserver"), "--etcd-servers=http://127.0.0.1:2379", "--bind-address=0.0.0.0", "--secure-port=6443"],
    ...[`--advertise-address=${ADDRESS}`, "--service-cluster-ip-range=10.98.0.0/16", "--profiling=false", GATES],
    ...[
      `--tls-cert-file=${keys("server.crt")}`,
      `--tls-private-key-file=${keys("server.key")}`,
      `--cert-dir=${join(folder, "server")}`,
    ],
    ...[`--client-ca-file=${keys("ca.crt")}`, `--token-auth-file=${credentials.tokenFile}`],
    ...["--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged=true"],
    ...[
      `--service-account-key-file=${keys("accounts.pub")}`,
      `--service-account-signing-key-file=${keys("accounts.key")}`,
    ],
    ...["--service-account-issuer=https://kubernetes.default.svc", `--kubelet-certificate-authority=${keys("ca.crt")}`],
    ...[`--kubelet-client-certificate=${keys("to-kubelet.crt")}`, `--kubelet-client-key=${keys("to-kubelet.key")}`],
    ...["--kubelet-preferred-address-types=InternalIP"],
    // A lost node is given up after seconds, not after five minutes.
    ...["--default-not-ready-toleration-seconds=10", "--default-unreachable-toleration-seconds=10"],
  ]);
  const config = (name) =>
    credentials.writeConfig(`${name}.kubeconfig`, "https://127.0.0.1:6443", credentials.certificate(name));
  programs.start("kube-controller-manager", [
    ...[bin("kube-controller-manager"), `--kubeconfig=${config("controllers")}`, "--leader-elect=false", GATES],
    ...["--use-service-account-credentials=true", `--service-account-private-key-file=${keys("accounts.key")}`],
    ...[
      `--root-ca-file=${keys("ca.crt")}`,
      "--bind-address=127.0.0.1",
      "--port=0",
      `--cert-dir=${join(folder, "controllers")}`,
    ],
    ...[`--controllers=${["*", ...NO_CONTROLLERS.map((name) => `-${name}`)].join(",")}`],
    ...["--node-monitor-period=2s", "--node-monitor-grace-period=20s"],
  ]);
  programs.start("kube-scheduler", [
    ...[bin("kube-scheduler"), `--kubeconfig=${config("scheduler")}`, "--leader-elect=false"],
    ...["--bind-address=127.0.0.1", "--port=0", `--cert-dir=${join(folder, "scheduler")}`],
  ]);
}
