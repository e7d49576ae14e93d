import { chmodSync, writeFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import type { KubeError } from "../../../../src/sandbox/backends/kubernetes/client/kube-error.js";
import { JOBS, PODS, type Pod } from "../../../../src/sandbox/backends/kubernetes/client/resources.js";
import { watch } from "../../../../src/sandbox/backends/kubernetes/client/watch.js";
import { failure, json, startScriptedApi } from "../../../support/kubernetes/scripted-api.js";
import { expectRefused } from "../../../support/refused.js";
import { createScratch } from "../../../support/scratch.js";

const scratch = createScratch();
afterAll(() => scratch.remove());
const place = { namespace: "team", name: "x" };

describe("a call", () => {
  test("deletes with a body of a known length, and the connection serves the next call", async () => {
    await using api = await startScriptedApi((_request, response) => json(response, 200, {}));
    const client = api.client();
    await client.delete(JOBS, place, { uid: "7", graceSeconds: 0 });
    await client.get(JOBS, place);
    const [first, second] = api.seen;
    expect(JSON.parse(first?.body ?? "")).toEqual({
      propagationPolicy: "Background",
      gracePeriodSeconds: 0,
      preconditions: { uid: "7" },
    });
    expect(first?.headers["content-length"]).toBe(String(first?.body.length));
    expect([first?.url, second?.method]).toEqual(["/apis/batch/v1/namespaces/team/jobs/x", "GET"]);
  });

  test("lists all pages", async () => {
    await using api = await startScriptedApi(({ url }, response) => {
      const isSecond = url.includes("continue=next");
      const item = { metadata: { name: isSecond ? "b" : "a" } };
      json(response, 200, { items: [item], metadata: { resourceVersion: "5", continue: isSecond ? "" : "next" } });
    });
    const { items, resourceVersion } = await api.client().list(PODS, { namespace: "team" }, { labels: "a=b" });
    expect(items.map(({ metadata }) => metadata.name)).toEqual(["a", "b"]);
    expect(resourceVersion).toBe("5");
    expect(api.seen[0]?.url).toContain("labelSelector=a%3Db");
  });

  test.each<[number, string, string, string, boolean]>([
    [401, "Unauthorized", "Unauthorized", "unauthenticated", false],
    [
      403,
      "Forbidden",
      'jobs is forbidden: User "jane" cannot create resource "jobs" in API group "batch"',
      "permission_denied",
      false,
    ],
    [403, "Forbidden", 'pods "x" is forbidden: exceeded quota: small, requested: cpu=1', "limit_exceeded", true],
    [
      403,
      "Forbidden",
      "unable to create new content in namespace x because it is being terminated",
      "unavailable",
      true,
    ],
    [
      403,
      "Forbidden",
      'pods "x" is forbidden: violates PodSecurity "restricted:latest": runAsNonRoot',
      "permission_denied",
      false,
    ],
    [404, "NotFound", 'namespaces "team" not found', "not_found", false],
    [409, "AlreadyExists", 'jobs.batch "x" already exists', "conflict", true],
    [422, "Invalid", 'Job.batch "x" is invalid', "invalid_argument", false],
    [413, "RequestEntityTooLarge", "etcdserver: request is too large", "limit_exceeded", false],
  ])("answered %i %s %s is %s", async (status, reason, message, code, retryable) => {
    await using api = await startScriptedApi((_request, response) => failure(response, status, reason, message));
    const error = (await api
      .client()
      .create(JOBS, place, {})
      .catch((thrown: unknown) => thrown)) as KubeError;
    expect(error).toMatchObject({ code, retryable, status, reason, backend: "kubernetes" });
    expect(error.message).toContain(message);
    expect(api.seen.length).toBe(1);
  });

  test("names the verb and the resource of a missing right in its hint", async () => {
    const message = 'jobs.batch is forbidden: User "jane" cannot create resource "jobs" in API group "batch"';
    await using api = await startScriptedApi((_request, response) => failure(response, 403, "Forbidden", message));
    const error = await api
      .client()
      .create(JOBS, place, {})
      .catch((thrown: unknown) => thrown);
    expect((error as KubeError).hint).toMatch(/jane lacks the verb create on jobs; glovebox doctor kubernetes/);
  });

  test("waits as long as it is asked to, also for a create: the server has refused it", async () => {
    await using api = await startScriptedApi((_request, response, index) => {
      if (index === 0) failure(response, 429, "TooManyRequests", "slow down", { "Retry-After": "1" });
      else json(response, 201, { metadata: { name: "x" } });
    });
    const started = performance.now();
    await api.client().create(JOBS, place, {});
    expect(performance.now() - started).toBeGreaterThan(900);
    expect(api.seen.length).toBe(2);
  });

  test("never repeats a create whose answer was lost", async () => {
    await using api = await startScriptedApi((request, response) => {
      if (request.method === "GET") json(response, 200, {});
      else response.socket?.destroy();
    });
    const client = api.client();
    await client.get(JOBS, place);
    await expectRefused(client.create(JOBS, place, {}), "unavailable", "lost");
    expect(api.seen.filter(({ method }) => method === "POST").length).toBe(1);
  });

  test("creates on a new connection, since one that was idle may be cut when it is used again; a change is repeated", async () => {
    const used = new WeakSet<object>();
    await using api = await startScriptedApi((_request, response) => {
      if (response.socket === null || used.has(response.socket)) return void response.socket?.destroy();
      used.add(response.socket);
      json(response, 200, { metadata: { name: "x" } });
    });
    const client = api.client();
    await client.get(JOBS, place);
    await client.create(JOBS, place, {});
    await client.patch(JOBS, place, {});
    expect(api.seen.map(({ method }) => method)).toEqual(["GET", "POST", "PATCH", "PATCH"]);
  });

  test("repeats a read whose connection broke, once the server has shown that it is one", async () => {
    await using api = await startScriptedApi((_request, response, index) => {
      if (index === 1) response.socket?.destroy();
      else json(response, 200, { metadata: { name: "x" } });
    });
    const client = api.client();
    await client.get(JOBS, place);
    await client.get(JOBS, place);
    expect(api.seen.length).toBe(3);
  });

  test("ends at its deadline, and when its caller gives up", async () => {
    await using api = await startScriptedApi(() => undefined);
    const client = api.client();
    await expectRefused(client.get(JOBS, place, { timeout: 100 }), "unavailable", "did not answer within 100 ms");
    await expectRefused(client.get(JOBS, place, { signal: AbortSignal.abort() }), "aborted");
    const aborter = new AbortController();
    const call = client.get(JOBS, place, { signal: aborter.signal });
    await expect.poll(() => api.seen.length).toBe(2);
    aborter.abort();
    await expectRefused(call, "aborted");
  });

  test("fails at once where nothing has ever answered", async () => {
    const api = await startScriptedApi(() => undefined);
    const client = api.client();
    await api[Symbol.asyncDispose]();
    const started = performance.now();
    await expectRefused(client.get(JOBS, place), "unavailable", "No Kubernetes API server answers");
    expect(performance.now() - started).toBeLessThan(5_000);
  });

  test("says so when something else than an API server answers", async () => {
    await using api = await startScriptedApi((_request, response) => response.end("<html>"));
    await expectRefused(api.client().get(JOBS, place), "internal", "not JSON");
  });
});

describe("credentials", () => {
  test("a token file is read again when the server refuses what was read", async () => {
    const tokenFile = join(scratch.path, "token");
    writeFileSync(tokenFile, "first-token\n");
    await using api = await startScriptedApi(({ headers }, response) => {
      if (headers.authorization === "Bearer second-token") json(response, 200, {});
      else {
        writeFileSync(tokenFile, "second-token\n");
        failure(response, 401, "Unauthorized", "Unauthorized");
      }
    });
    await api.client({ tokenFile }).get(JOBS, place);
    expect(api.seen.map(({ headers }) => headers.authorization)).toEqual(["Bearer first-token", "Bearer second-token"]);
  });

  test("a call that is under way ends in peace when another one renews the certificate", async () => {
    const [certificate, key] = ["client.crt", "client.key"].map((name) => ({ path: join(scratch.path, name) }));
    for (const each of [certificate, key]) writeFileSync(each?.path ?? "", "first");
    const slow: ServerResponse[] = [];
    let isRenewed = false;
    await using api = await startScriptedApi(({ method }, response) => {
      if (method === "POST") slow.push(response);
      else if (isRenewed) json(response, 200, {});
      else {
        writeFileSync(certificate?.path ?? "", "second");
        isRenewed = true;
        failure(response, 401, "Unauthorized", "Unauthorized");
      }
    });
    const client = api.client({ ...(certificate && { certificate }), ...(key && { key }) });
    const creating = client.create(JOBS, place, {});
    await expect.poll(() => slow.length).toBe(1);
    await client.get(JOBS, place);
    client.close();
    json(slow[0] as ServerResponse, 201, { metadata: { name: "made" } });
    expect(await creating).toMatchObject({ metadata: { name: "made" } });
  });

  test("a token of the file itself is not tried twice", async () => {
    await using api = await startScriptedApi((_request, response) =>
      failure(response, 401, "Unauthorized", "Unauthorized"),
    );
    await expectRefused(api.client({ token: "expired-token" }).get(JOBS, place), "unauthenticated");
    expect(api.seen.length).toBe(1);
  });

  const program = (
    name: string,
    script: string,
  ): { apiVersion: string; command: string; args: string[]; env: object } => {
    const path = join(scratch.path, name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
    return { apiVersion: "client.authentication.k8s.io/v1", command: path, args: [], env: {} };
  };
  const credential = (status: string): string =>
    `echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":${status}}'`;

  test("a program is asked once for many calls, and again after a refusal", async () => {
    const calls = join(scratch.path, "calls");
    const exec = program(
      "login",
      `echo "$KUBERNETES_EXEC_INFO" >> ${calls}\nn=$(wc -l < ${calls})\n${credential('{"token":"token-of-call-\'$n\'"}')}`,
    );
    await using api = await startScriptedApi(({ headers }, response) => {
      if (headers.authorization === "Bearer token-of-call-2") json(response, 200, {});
      else failure(response, 401, "Unauthorized", "Unauthorized");
    });
    const client = api.client({ exec: { ...exec, env: {} } });
    await Promise.all([client.get(JOBS, place), client.get(JOBS, place), client.get(JOBS, place)]);
    const shown = new Set(api.seen.map(({ headers }) => headers.authorization));
    expect([...shown]).toEqual(["Bearer token-of-call-1", "Bearer token-of-call-2"]);
  });

  test("a credential that expires soon is renewed before it does", async () => {
    const times = join(scratch.path, "times");
    const soon = new Date(Date.now() + 5_000).toISOString();
    const exec = program(
      "short",
      `echo x >> ${times}\n${credential(`{"token":"short-lived","expirationTimestamp":"${soon}"}`)}`,
    );
    await using api = await startScriptedApi((_request, response) => json(response, 200, {}));
    const client = api.client({ exec: { ...exec, env: {} } });
    await client.get(JOBS, place);
    await client.get(JOBS, place);
    const { readFileSync } = await import("node:fs");
    expect(readFileSync(times, "utf8")).toBe("x\nx\n");
  });

  test.each<[string, string, string, string]>([
    [
      "one that fails, with its complaint",
      "echo 'please log in' >&2; exit 3",
      "unauthenticated",
      "exited with 3: please log in",
    ],
    ["one that prints nothing of use", "echo secret-token", "unauthenticated", "printed something that is not JSON"],
    [
      "one that prints another version",
      `echo '{"kind":"ExecCredential","apiVersion":"v0","status":{}}'`,
      "unauthenticated",
      "no ExecCredential",
    ],
    [
      "one whose credential has expired",
      credential('{"token":"old-token-1","expirationTimestamp":"2001-01-01T00:00:00Z"}'),
      "unauthenticated",
      "has expired",
    ],
  ])("refuses %s", async (name, script, code, words) => {
    const exec = program(name.replaceAll(" ", "-"), script);
    await using api = await startScriptedApi(() => undefined);
    const error = await api
      .client({ exec: { ...exec, env: {} } })
      .get(JOBS, place)
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code });
    expect((error as Error).message).toContain(words);
    expect((error as Error).message).not.toContain("secret-token");
    expect(api.seen).toEqual([]);
  });

  test("reports a program that is not installed, with its own hint", async () => {
    await using api = await startScriptedApi(() => undefined);
    const exec = {
      apiVersion: "client.authentication.k8s.io/v1",
      command: "no-such-login",
      args: [],
      env: {},
      installHint: "get it\nhere",
    };
    const error = await api
      .client({ exec })
      .get(JOBS, place)
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "missing_dependency", hint: "get it" });
  });
});

describe("a watch", () => {
  const pod = (name: string, version: string, phase: string): object => ({
    metadata: { name, resourceVersion: version },
    status: { phase },
  });
  const line = (type: string, object: object): string => `${JSON.stringify({ type, object })}\n`;
  const follow = async (
    api: Awaited<ReturnType<typeof startScriptedApi>>,
    most: number,
    fields?: string,
  ): Promise<unknown[]> => {
    const end = new AbortController();
    const events: unknown[] = [];
    const selector = fields === undefined ? {} : { fields };
    for await (const event of watch<Pod>(
      api.client(),
      PODS,
      { namespace: "team" },
      { ...selector, signal: end.signal },
    )) {
      events.push(
        event.type === "all"
          ? event.objects.map(({ metadata }) => metadata.name)
          : `${event.type} ${event.object.metadata.name} ${event.object.status?.phase}`,
      );
      if (events.length === most) break;
    }
    end.abort();
    return events;
  };

  test("of one object needs no list; its lines may be cut anywhere", async () => {
    const text = Buffer.from(
      line("ADDED", pod("grün", "5", "Pending")) + line("MODIFIED", pod("grün", "6", "Running")),
    );
    await using api = await startScriptedApi((_request, response) => {
      void (async () => {
        for (const byte of text) {
          response.write(Uint8Array.of(byte));
          if (byte > 127) await new Promise((resolve) => setImmediate(resolve));
        }
      })();
    });
    expect(await follow(api, 2, "metadata.name=grün")).toEqual(["set grün Pending", "set grün Running"]);
    expect(api.seen.length).toBe(1);
  });

  test("goes on where it was when its connection ends", async () => {
    await using api = await startScriptedApi(({ url }, response) => {
      if (!url.includes("watch=true")) json(response, 200, { items: [], metadata: { resourceVersion: "4" } });
      else if (url.includes("resourceVersion=4")) {
        response.write(
          line("ADDED", pod("a", "5", "Pending")) + line("BOOKMARK", { metadata: { resourceVersion: "9" } }),
        );
        setTimeout(() => response.socket?.destroy(), 20);
      } else response.write(line("DELETED", pod("a", "10", "Failed")));
    });
    expect(await follow(api, 3)).toEqual([[], "set a Pending", "gone a Failed"]);
    expect(api.seen.at(-1)?.url).toContain("resourceVersion=9");
  });

  test.each(["as an answer", "as an event"])("lists again when its history is gone: 410 %s", async (how) => {
    const gone = {
      kind: "Status",
      status: "Failure",
      code: 410,
      reason: "Expired",
      message: "too old resource version",
    };
    await using api = await startScriptedApi(({ url }, response) => {
      if (!url.includes("watch=true")) {
        const isFirst = api.seen.length === 1;
        json(response, 200, {
          items: [pod(isFirst ? "a" : "b", "1", "Running")],
          metadata: { resourceVersion: isFirst ? "4" : "20" },
        });
      } else if (url.includes("resourceVersion=20")) response.write(line("MODIFIED", pod("b", "21", "Failed")));
      else if (how === "as an answer") json(response, 410, gone);
      else response.end(line("ERROR", gone));
    });
    expect(await follow(api, 3)).toEqual([["a"], ["b"], "set b Failed"]);
  });

  test("throws what waiting does not help", async () => {
    await using api = await startScriptedApi((_request, response) => failure(response, 403, "Forbidden", "no"));
    await expectRefused(follow(api, 1), "permission_denied");
  });

  test("does not ask a server without a pause that ends each watch at once", async () => {
    await using api = await startScriptedApi((_request, response) => response.end());
    const end = new AbortController();
    const fields = "metadata.name=x";
    const events = watch<Pod>(api.client(), PODS, { namespace: "team" }, { fields, signal: end.signal });
    setTimeout(() => end.abort(), 1_000);
    await expect(events.next()).rejects.toThrow();
    expect(api.seen.length).toBeLessThan(8);
  });
});
