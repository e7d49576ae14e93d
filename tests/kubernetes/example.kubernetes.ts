import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, expect, test } from "vitest";
import { testCluster, whyNoTestCluster } from "../support/kubernetes/cluster.js";
import { enforcePolicies } from "../support/kubernetes/enforce-policies.js";
import { createScratch } from "../support/scratch.js";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));
const scratch = createScratch();
afterAll(() => scratch.remove());

test("the example finds itself in order on a cluster that enforces policies", async ({ skip }) => {
  const missing = whyNoTestCluster();
  if (missing !== undefined) return skip(missing);
  await using _ = await enforcePolicies();
  const env = {
    ...process.env,
    KUBECONFIG: testCluster().kubeconfig,
    GLOVEBOX_HOME: scratch.home,
    GLOVEBOX_EXAMPLE_IMAGE: "glovebox-test/busybox:1",
  };
  const { stdout } = await run(process.execPath, [join(root, "dist", "examples", "kubernetes.js")], { env, cwd: root });
  expect(stdout.trimEnd().split("\n").at(-1)).toBe("opened, confined, refused, forked");
});
