import type { KubeClient } from "../../../src/sandbox/backends/kubernetes/client/kube-client.js";
import { execInPod } from "../../../src/sandbox/backends/kubernetes/client/pod-exec.js";
import { CONFIG_MAPS, type KubeObject, PODS } from "../../../src/sandbox/backends/kubernetes/client/resources.js";
import { watch } from "../../../src/sandbox/backends/kubernetes/client/watch.js";

/** What a server answered: the data, or the status, reason and text of its refusal. */
export type Outcome = unknown;

/** A server, and a pod on it whose container `main` runs. */
export interface WireSubject {
  readonly client: KubeClient;
  readonly namespace: string;
  readonly pod: string;
}

/** One question that a real server and ours must answer alike. */
export interface WireCase {
  readonly name: string;
  ask(subject: WireSubject): Promise<Outcome>;
  readonly answer: Outcome;
}

async function refusalOf(call: Promise<unknown>): Promise<Outcome> {
  return await call.then(
    () => "was taken",
    ({ status, reason, code }: { status?: number; reason?: string; code: string }) => ({ status, reason, code }),
  );
}

async function runIn({ client, namespace, pod }: WireSubject, argv: string[], input?: string): Promise<Outcome> {
  const stream = await execInPod(client, { namespace, pod, container: "main", argv });
  stream.on("error", () => undefined); // the exit code says it, too
  let output = "";
  if (input !== undefined) stream.write(input);
  stream.on("data", (bytes: Buffer) => {
    output += bytes.toString();
  });
  const code = await stream.exitCode.catch(({ code: kind }: { code: string }) => kind);
  return { code, output, complaint: stream.complaint };
}

const map = (name: string): object => ({ metadata: { name }, immutable: true, data: { key: "value" } });

export const wireCases: readonly WireCase[] = [
  {
    name: "an object that is not there",
    ask: ({ client, namespace }) => refusalOf(client.get(PODS, { namespace, name: "nothing" })),
    answer: { status: 404, reason: "NotFound", code: "not_found" },
  },
  {
    name: "a namespace that is not there",
    ask: ({ client }) => refusalOf(client.create(CONFIG_MAPS, { namespace: "nowhere" }, map("a"))),
    answer: { status: 404, reason: "NotFound", code: "not_found" },
  },
  {
    name: "an object that is there already",
    async ask({ client, namespace }) {
      await client.create(CONFIG_MAPS, { namespace }, map("twice"));
      return await refusalOf(client.create(CONFIG_MAPS, { namespace }, map("twice")));
    },
    answer: { status: 409, reason: "AlreadyExists", code: "conflict" },
  },
  {
    name: "a name that is none",
    ask: ({ client, namespace }) => refusalOf(client.create(CONFIG_MAPS, { namespace }, map("Not_A_Name"))),
    answer: { status: 422, reason: "Invalid", code: "invalid_argument" },
  },
  {
    name: "a field of another type",
    ask: ({ client, namespace }) =>
      refusalOf(client.create(CONFIG_MAPS, { namespace }, { metadata: { name: "typed" }, immutable: "yes" })),
    answer: { status: 400, reason: "BadRequest", code: "invalid_argument" },
  },
  {
    name: "a change of what is immutable",
    async ask({ client, namespace }) {
      await client.create(CONFIG_MAPS, { namespace }, map("fixed"));
      const place = { namespace, name: "fixed" };
      return await refusalOf(client.patch(CONFIG_MAPS, place, { data: { key: "other" } }));
    },
    answer: { status: 422, reason: "Invalid", code: "invalid_argument" },
  },
  {
    name: "a pod whose requests are larger than its limits",
    ask: ({ client, namespace }) => {
      const resources = { requests: { memory: "2Gi" }, limits: { memory: "1Gi" } };
      const spec = { containers: [{ name: "main", image: "x", resources }] };
      return refusalOf(client.create(PODS, { namespace }, { metadata: { name: "greedy" }, spec }));
    },
    answer: { status: 422, reason: "Invalid", code: "invalid_argument" },
  },
  {
    name: "a deletion of another one of the same name",
    async ask({ client, namespace }) {
      await client.create(CONFIG_MAPS, { namespace }, map("replaced"));
      const uid = "00000000-0000-0000-0000-000000000000";
      return [
        await client.delete(CONFIG_MAPS, { namespace, name: "replaced" }, { uid }),
        await client.delete(CONFIG_MAPS, { namespace, name: "replaced" }),
        await client.delete(CONFIG_MAPS, { namespace, name: "replaced" }),
      ];
    },
    answer: [false, true, false],
  },
  {
    name: "a watch from a version on",
    async ask({ client, namespace }) {
      const { resourceVersion } = await client.list<KubeObject>(CONFIG_MAPS, { namespace });
      await client.create(CONFIG_MAPS, { namespace }, map("watched"));
      await client.patch(CONFIG_MAPS, { namespace, name: "watched" }, { metadata: { labels: { a: "b" } } });
      await client.delete(CONFIG_MAPS, { namespace, name: "watched" });
      const seen: string[] = [];
      const end = new AbortController();
      const place = { namespace };
      for await (const event of watch<KubeObject>(client, CONFIG_MAPS, place, {
        signal: end.signal,
        resourceVersion,
      })) {
        if (event.type === "all") continue;
        seen.push(`${event.type} ${event.object.metadata.name} ${event.object.metadata.labels?.["a"] ?? ""}`);
        if (event.type === "gone") break;
      }
      end.abort();
      return seen;
    },
    answer: ["set watched ", "set watched b", "gone watched b"],
  },
  {
    name: "a program and its exit code",
    ask: (subject) => runIn(subject, ["sh", "-c", "echo out; echo err >&2; exit 7"]),
    answer: { code: 7, output: "out\n", complaint: "err" },
  },
  {
    name: "a program that reads a line",
    ask: (subject) => runIn(subject, ["sh", "-c", "read line; echo got $line"], "this\n"),
    answer: { code: 0, output: "got this\n", complaint: "" },
  },
  {
    name: "a program that is not there",
    ask: (subject) => runIn(subject, ["no-such-program"]),
    answer: { code: "not_found", output: "", complaint: "" },
  },
  {
    name: "a container that is not there",
    ask: ({ client, namespace, pod }) =>
      refusalOf(execInPod(client, { namespace, pod, container: "other", argv: ["true"] })),
    answer: { status: 400, reason: "BadRequest", code: "invalid_argument" },
  },
];
