import { channel } from "node:diagnostics_channel";
import { once } from "node:events";
import { execInPod } from "../../dist/src/sandbox/backends/kubernetes/client/pod-exec.js";
import { clusterOf } from "../../dist/src/sandbox/backends/kubernetes/clusters.js";
import { podOfJob } from "../../dist/src/sandbox/backends/kubernetes/job-pod.js";
import { createKubernetesSandbox } from "../../dist/src/sandbox/kubernetes.js";
import { BUSYBOX, ensureArchive } from "../../scripts/image-cache.mjs";
import { ensureKubernetes } from "../../scripts/kubernetes/cache.mjs";
import { startCluster } from "../../scripts/kubernetes/cluster.mjs";
import { whyNoCluster } from "../../scripts/kubernetes/why-not.mjs";
import { goal, interleave, ratioGoal, row, timed } from "../parts/measure.mjs";

const NAMESPACES = { api: "v1", plural: "namespaces", isClusterWide: true };
const PODS = { api: "v1", plural: "pods" };
const JOBS = { api: "batch/v1", plural: "jobs" };
const IMAGE = "glovebox-test/busybox:1";
const NAMESPACE = "bench";
/** What a Job without anything of ours and a sandbox ask for. */
const RESOURCES = { cpu: "500m", memory: "128Mi" };
const IN_A_ROW = 10;

/** Commands and starts of pods on a real cluster, against the cluster's own exec and a bare Job. */
export async function measure({ isQuick }) {
  const reason = whyNoCluster();
  if (reason !== undefined) return { rows: [], goals: [], notes: [`not run: ${reason}`] };
  const images = { [BUSYBOX]: await ensureArchive(BUSYBOX) };
  const cluster = await startCluster({ programs: await ensureKubernetes(), images });
  try {
    process.env.KUBECONFIG = cluster.kubeconfig;
    const client = await clusterOf({ namespace: NAMESPACE });
    await client.create(NAMESPACES, { namespace: "" }, { metadata: { name: NAMESPACE } });
    const execs = await measureExec(client, isQuick);
    const starts = await measureStart(client, isQuick);
    return { rows: [...execs.rows, ...starts.rows], goals: [...execs.goals, ...starts.goals] };
  } finally {
    await cluster.stop();
  }
}

/** The cluster enforces no policies, so the network is not restricted; that makes no difference to any figure. */
function open() {
  return createKubernetesSandbox({
    image: IMAGE,
    network: "full",
    kubernetes: { namespace: NAMESPACE, resources: RESOURCES },
  });
}

async function measureExec(client, isQuick) {
  const sandbox = await open();
  try {
    return await measureExecIn(sandbox, client, isQuick);
  } finally {
    await sandbox.teardown();
  }
}

async function measureExecIn(sandbox, client, isQuick) {
  const { items } = await client.list(PODS, { namespace: NAMESPACE }, { labels: `job-name=glovebox-${sandbox.id}` });
  const place = { namespace: NAMESPACE, pod: items[0].metadata.name, container: "sandbox" };
  const echo = await execInPod(client, { ...place, argv: ["cat"] });
  const variants = {
    "glovebox, true": async () => expectZero((await sandbox.exec({ argv: ["true"] })).exitCode),
    "one byte and back through an exec": async () => {
      echo.write("x");
      await once(echo, "data");
    },
    "a new exec of true": async () => {
      const stream = await execInPod(client, { ...place, argv: ["true"] });
      stream.resume();
      expectZero(await stream.exitCode);
    },
  };
  const turns = Object.entries(variants).map(([name, work]) => [name, () => middleOf(work)]);
  const samples = await interleave(Object.fromEntries(turns), { rounds: isQuick ? 10 : 40, warmup: 3 });
  echo.destroy();
  const rows = Object.entries(samples).map(([name, taken]) => row(name, taken));
  const [ours, echoed, fresh] = rows;
  return {
    rows,
    goals: [
      goal("what an exec adds to the round trip of the cluster's exec channel", {
        value: ours.p50 - echoed.p50,
        ...{ unit: "ms", atMost: 3, ours, other: echoed, against: echoed.variant },
      }),
      ratioGoal("exec of true, a new exec against glovebox", { ours: fresh, other: ours, atLeast: 5 }),
    ],
  };
}

async function measureStart(client, isQuick) {
  const samples = await interleave(
    {
      "open to the first exec": async () => {
        let sandbox;
        const took = await timed(async () => {
          sandbox = await open();
          await sandbox.exec({ argv: ["true"] });
        });
        await sandbox.teardown();
        return took;
      },
      "a bare Job until it runs": (round) => startJob(client, `bare-${round + 1}`),
    },
    { rounds: isQuick ? 3 : 12 },
  );
  const rows = Object.entries(samples).map(([name, taken]) => row(name, taken));
  const [ours, other] = rows;
  const requests = row("requests of a sandbox's lifetime", [await countRequests()], "requests");
  return {
    rows: [...rows, requests],
    goals: [
      ratioGoal("open to the first exec against a bare Job", { ours, other, atMost: 1.2 }),
      goal("requests of a sandbox's lifetime", { value: requests.p50, unit: "requests", atMost: 6, ours: requests }),
    ],
  };
}

async function startJob(client, name) {
  const container = { name: "main", image: IMAGE, imagePullPolicy: "IfNotPresent", command: ["sleep", "1000"] };
  const resources = { requests: RESOURCES, limits: RESOURCES };
  const spec = { restartPolicy: "Never", terminationGracePeriodSeconds: 0, containers: [{ ...container, resources }] };
  const took = await timed(async () => {
    const template = { spec: { ...spec, automountServiceAccountToken: false } };
    await client.create(JOBS, { namespace: NAMESPACE }, { metadata: { name }, spec: { template } });
    const isDone = ({ status }) => status?.containerStatuses?.[0]?.state?.running !== undefined;
    await podOfJob(client, name, { signal: AbortSignal.timeout(60_000), isDone });
  });
  await client.delete(JOBS, { namespace: NAMESPACE, name });
  return took;
}

/** Of a namespace that has had sandboxes before. */
async function countRequests() {
  let count = 0;
  const started = channel("http.client.request.start");
  const onStart = () => count++;
  started.subscribe(onStart);
  try {
    const sandbox = await open();
    await sandbox.exec({ argv: ["true"] });
    await sandbox.writeFile("file", "content");
    await sandbox.teardown();
  } finally {
    started.unsubscribe(onStart);
  }
  return count;
}

/** The middle of some calls in a row: one alone would be mostly noise. */
async function middleOf(work) {
  const taken = [];
  for (let n = 0; n < IN_A_ROW; n++) taken.push(await timed(work));
  return taken.sort((a, b) => a - b)[IN_A_ROW / 2];
}

function expectZero(exitCode) {
  if (exitCode !== 0) throw new Error(`exit code ${exitCode}`);
}
