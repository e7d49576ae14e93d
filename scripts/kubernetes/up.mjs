import { parseArgs } from "node:util";
import { BUSYBOX, DEBIAN, ensureArchive } from "../image-cache.mjs";
import { StepFailed, step } from "../step.mjs";
import { ensureClusterParts } from "../system-parts.mjs";
import { ClusterNotPossible, ensureKubernetes, NOT_HERE } from "./cache.mjs";
import { startCluster } from "./cluster.mjs";
import { whyNoCluster } from "./why-not.mjs";

/**
 * `npm run kubernetes:up`: a real Kubernetes on this machine, in the foreground, until it is interrupted or its standard input ends with
 * `--until-input-ends`. `--nodes 2` starts two nodes, `--no-images` starts without the images of tests. Where there can be no cluster it ends
 * with 77, and says why.
 */
const { values } = parseArgs({
  options: {
    nodes: { type: "string", default: "1" },
    "no-images": { type: "boolean", default: false },
    "until-input-ends": { type: "boolean", default: false },
  },
});
const nodes = Number(values.nodes);
if (!(Number.isInteger(nodes) && nodes >= 1 && nodes <= 4))
  throw new Error(`--nodes must be 1 to 4, not ${values.nodes}`);

let cluster;
async function end() {
  await cluster?.stop();
  process.exit(0);
}
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => void end());
// An npm that is ended ends the shell that it has started, and leaves this process.
const parent = process.ppid;
setInterval(() => process.ppid !== parent && void end(), 500).unref();
if (values["until-input-ends"]) process.stdin.resume().once("end", () => void end());
try {
  await step("system parts", ensureClusterParts);
  const reason = whyNoCluster();
  if (reason !== undefined) throw new ClusterNotPossible(reason);
  let programs;
  let impossible;
  await step("programs", async (progress) => {
    programs = await ensureKubernetes(progress).catch((error) => {
      if (!(error instanceof ClusterNotPossible)) throw error;
      impossible = error;
    });
  });
  if (impossible) throw impossible;
  const images = {};
  await step("images", async (progress) => {
    for (const name of values["no-images"] ? [] : [BUSYBOX, DEBIAN]) images[name] = await ensureArchive(name, progress);
  });
  await step("cluster", async (progress) => {
    cluster = await startCluster({ programs, nodes, images, onLine: progress });
  });
  console.log(`KUBECONFIG=${cluster.kubeconfig}\nCLUSTER=${cluster.path}`);
  await cluster.ended;
  process.exitCode = 1;
} catch (error) {
  if (error instanceof ClusterNotPossible) console.error(`not possible here: ${error.message}`);
  else if (!(error instanceof StepFailed)) throw error;
  process.exitCode = error instanceof ClusterNotPossible ? NOT_HERE : 1;
}
