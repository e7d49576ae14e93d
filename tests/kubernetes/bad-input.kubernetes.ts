import { createSign } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { createKubernetesSandbox } from "../../src/sandbox/backends/kubernetes.js";
import type { SandboxOptions } from "../../src/sandbox/types.js";
import { describeUnless } from "../support/describe-unless.js";
import { withEnv } from "../support/environment.js";
import { api, testCluster, whyNoTestCluster } from "../support/kubernetes/cluster.js";
import { expectNothingLeft } from "../support/kubernetes/left-of.js";
import { useKubePlace } from "../support/kubernetes/place.js";
import { expectRefused, refusalOf } from "../support/refused.js";
import { createScratch } from "../support/scratch.js";

/** A token of a service account that the cluster's own key has signed, which is good until a time in seconds. */
async function signToken(namespace: string, expires: number): Promise<string> {
  const { metadata } = await api("GET", `/api/v1/namespaces/${namespace}/serviceaccounts/default`);
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");
  const issuer = "https://kubernetes.default.svc";
  const bound = { namespace, serviceaccount: { name: "default", uid: metadata.uid as string } };
  const claims = {
    "kubernetes.io": bound,
    iss: issuer,
    aud: [issuer],
    sub: `system:serviceaccount:${namespace}:default`,
    exp: expires,
    iat: expires - 3_600,
    nbf: expires - 3_600,
  };
  const text = `${part({ alg: "ES256", typ: "JWT" })}.${part(claims)}`;
  const key = { key: readFileSync(testCluster().accountKey), dsaEncoding: "ieee-p1363" as const };
  return `${text}.${createSign("sha256").update(text).sign(key).toString("base64url")}`;
}

describeUnless(whyNoTestCluster(), "what a cluster does not have or not allow", {}, () => {
  const scratch = createScratch();
  afterAll(() => scratch.remove());
  const place = useKubePlace("bad-input");
  const opening = (opts: SandboxOptions): Promise<unknown> => place.open({ operationTimeout: 30_000, ...opts });
  const withToken = (name: string, token: string): string => {
    const config = JSON.parse(readFileSync(testCluster().kubeconfig, "utf8")) as { users: { user: object }[] };
    for (const each of config.users) each.user = { token };
    const path = join(scratch.path, name);
    writeFileSync(path, JSON.stringify(config));
    return path;
  };

  it("refuses without a kubeconfig", async () => {
    await withEnv({ KUBECONFIG: undefined, HOME: scratch.path, KUBERNETES_SERVICE_HOST: undefined }, async () => {
      await expectRefused(createKubernetesSandbox({ image: "x" }), "unauthenticated", "kubeconfig");
    });
    const missing = join(scratch.path, "nowhere");
    await expectRefused(opening({ kubernetes: { kubeconfig: missing } }), "not_found", missing);
  });

  it("refuses a context that does not exist, and names those that do", async () => {
    await expectRefused(opening({ kubernetes: { context: "moon" } }), "not_found", "moon");
    const failure = await refusalOf(opening({ kubernetes: { context: "moon" } }));
    expect(failure).toMatchObject({ hint: expect.stringContaining("glovebox-test") as unknown });
  });

  it("refuses a namespace that is missing", async () => {
    await expectRefused(
      opening({ kubernetes: { namespace: "nowhere" } }),
      "not_found",
      'namespaces "nowhere" not found',
    );
  });

  it("refuses a user without rights, with the verb and the resource", async () => {
    const { weakKubeconfig } = testCluster();
    const call = opening({ kubernetes: { kubeconfig: weakKubeconfig } });
    await expectRefused(call, "permission_denied", 'User "weak" cannot', place.namespace);
    await expectNothingLeft(place.namespace);
  });

  it("refuses a token that is too old", async () => {
    const seconds = Math.floor(Date.now() / 1_000);
    const old = withToken("old", await signToken(place.namespace, seconds - 60));
    await expectRefused(opening({ kubernetes: { kubeconfig: old } }), "unauthenticated");
    await expectRefused(opening({ kubernetes: { kubeconfig: withToken("wrong", "nonsense") } }), "unauthenticated");
    // Only its age is wrong with it: a newer one is somebody without rights.
    const fresh = withToken("fresh", await signToken(place.namespace, seconds + 600));
    await expectRefused(opening({ kubernetes: { kubeconfig: fresh } }), "permission_denied", "cannot");
  });

  it("reports an image that can't be pulled, with the node's reason, and leaves nothing", async () => {
    const refused = async (): Promise<void> => {
      const call = opening({ image: "registry.invalid/nothing:1" });
      await expectRefused(call, "unavailable", "registry.invalid/nothing:1", "ErrImagePull");
      await expectNothingLeft(place.namespace);
    };
    // The first pod of a namespace is the canary's. Once that has proven the policy, it is the sandbox's own.
    await refused();
    await (await place.open()).teardown();
    await refused();
  });

  it("reports a quota, with what is used of it, and leaves nothing", async () => {
    // The first one in a namespace flies the canary; it is the sandbox's own pod that the quota must refuse.
    await (await place.open()).teardown();
    const quotas = `/api/v1/namespaces/${place.namespace}/resourcequotas`;
    await api("POST", quotas, { metadata: { name: "none" }, spec: { hard: { "requests.cpu": "100m" } } });
    try {
      await expect.poll(async () => (await api("GET", `${quotas}/none`)).status.hard).toBeTruthy();
      await expectRefused(opening({}), "limit_exceeded", "exceeded quota");
    } finally {
      await api("DELETE", `${quotas}/none`);
    }
    await expectNothingLeft(place.namespace);
  });
});
