import { readFileSync } from "node:fs";
import { request } from "node:http";
import { request as secureRequest } from "node:https";

/** What `cluster.json` says of a running cluster. */
export interface TestCluster {
  /** The API server's address on this machine. */
  readonly server: string;
  readonly kubeconfig: string;
  /** Of a user without any right. */
  readonly weakKubeconfig: string;
  /** The API server's address for pods. */
  readonly inside: string;
  readonly tokens: { readonly admin: string; readonly weak: string };
  /** A file with the key that signs the tokens of service accounts. */
  readonly accountKey: string;
  readonly ca: string;
  readonly control: string;
  readonly logs: string;
  readonly nodes: readonly { readonly name: string; readonly address: string }[];
}

export interface ApiAnswer {
  readonly status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look at what the server really says.
  readonly body: any;
}

/** Why the tests of a real cluster are not run; undefined when there is one. */
export function whyNoTestCluster(): string | undefined {
  if (process.env["GLOVEBOX_TEST_CLUSTER"]) return undefined;
  return process.env["GLOVEBOX_TEST_NO_CLUSTER"] ?? "no cluster: these tests are for npm run test:kubernetes";
}

/** The cluster of this run. */
export function testCluster(): TestCluster {
  return JSON.parse(readFileSync(process.env["GLOVEBOX_TEST_CLUSTER"] ?? "", "utf8")) as TestCluster;
}

/** One call to the API server as its administrator, or with another token. Bodies are JSON. */
export function callApi(method: string, path: string, body?: unknown, token?: string): Promise<ApiAnswer> {
  const { server, ca, tokens } = testCluster();
  const text = body === undefined ? undefined : JSON.stringify(body);
  const type = method === "PATCH" ? "application/merge-patch+json" : "application/json";
  const headers = {
    authorization: `Bearer ${token ?? tokens.admin}`,
    ...(text === undefined ? {} : { "content-type": type, "content-length": Buffer.byteLength(text) }),
  };
  return new Promise((resolve, reject) => {
    const call = secureRequest(`${server}${path}`, { method, ca, headers, agent: false, timeout: 30_000 }, (answer) => {
      let said = "";
      answer.setEncoding("utf8").on("data", (piece: string) => {
        said += piece;
      });
      answer.on("error", reject);
      answer.on("end", () =>
        resolve({ status: answer.statusCode ?? 0, body: said.startsWith("{") ? JSON.parse(said) : said }),
      );
    });
    call.on("timeout", () => call.destroy(new Error(`${method} ${path}: no answer`)));
    call.on("error", reject);
    call.end(text);
  });
}

/** The same for a call that must succeed; gives what it answered. */
// biome-ignore lint/suspicious/noExplicitAny: as above.
export async function api(method: string, path: string, body?: unknown): Promise<any> {
  const { status, body: said } = await callApi(method, path, body);
  if (status >= 300) throw new Error(`${method} ${path}: ${status} ${said.message ?? said}`);
  return said;
}

/** The names in a collection of a namespace, such as `apis/batch/v1/jobs`, with a query if only some of them are wanted. */
export async function namesIn(namespace: string, collection: string): Promise<string[]> {
  const at = collection.lastIndexOf("/");
  const path = `/${collection.slice(0, at)}/namespaces/${namespace}${collection.slice(at)}`;
  const { items } = (await api("GET", path)) as { items: { metadata: { name: string } }[] };
  return items.map(({ metadata }) => metadata.name);
}

/** Makes something happen to the cluster; see `scripts/kubernetes/control.mjs`. */
export function control<T = unknown>(act: string, body: Record<string, unknown> = {}): Promise<T> {
  return new Promise((resolve, reject) => {
    const call = request({ socketPath: testCluster().control, method: "POST", path: `/${act}` }, (answer) => {
      let said = "";
      answer.setEncoding("utf8").on("data", (piece: string) => {
        said += piece;
      });
      answer.on("end", () => {
        if (answer.statusCode === 200) resolve(JSON.parse(said) as T);
        else reject(new Error(`${act}: ${said}`));
      });
    });
    call.on("error", reject);
    call.end(JSON.stringify(body));
  });
}

/** Runs a command in the namespaces of a node; fails if it fails. */
export async function runInNode(node: string, ...argv: string[]): Promise<string> {
  const result = await control<{ code: number; stdout: string; stderr: string }>("run", { node, argv });
  if (result.code !== 0) throw new Error(`${argv.join(" ")} on ${node}: ${result.code} ${result.stderr}`);
  return result.stdout;
}
