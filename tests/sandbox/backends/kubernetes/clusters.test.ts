import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { clusterOf, lastingChoice } from "../../../../src/sandbox/backends/kubernetes/clusters.js";
import { withEnv } from "../../../support/environment.js";
import { createScratch } from "../../../support/scratch.js";

const scratch = createScratch();
afterAll(() => scratch.remove());

/** A kubeconfig whose one context has the name that many clusters give theirs. */
function configOf(path: string, server: string): string {
  const config = {
    "current-context": "default",
    clusters: [{ name: "default", cluster: { server } }],
    contexts: [{ name: "default", context: { cluster: "default" } }],
  };
  writeFileSync(path, JSON.stringify(config));
  return path;
}

test("what was opened by the file at home is found again when KUBECONFIG names another file", async () => {
  mkdirSync(join(scratch.path, ".kube"));
  const own = configOf(join(scratch.path, ".kube", "config"), "https://first.invalid");
  const other = configOf(join(scratch.path, "other"), "https://second.invalid");
  const home = { HOME: scratch.path, KUBERNETES_SERVICE_HOST: undefined };
  const choice = await withEnv({ ...home, KUBECONFIG: undefined }, async () => lastingChoice({}, await clusterOf({})));
  expect(choice).toMatchObject({ kubeconfig: own, context: "default" });
  await withEnv({ ...home, KUBECONFIG: other }, async () => {
    expect((await clusterOf(choice)).access.server.host).toBe("first.invalid");
  });
});
