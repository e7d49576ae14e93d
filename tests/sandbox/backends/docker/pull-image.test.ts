import { describe, expect, test } from "vitest";
import type { SandboxErrorCode } from "../../../../contracts/errors.js";
import { pullImage } from "../../../../src/sandbox/backends/docker/image/pull-image.js";
import { useScriptedEngine } from "../../../support/docker/scripted-engine.js";

/** The reason why every pull fails, as the engine words it. */
let reason: string;
/** Whether the engine reports it after the status. */
let isInProgress: boolean;

const engine = useScriptedEngine((request, response) => {
  request.resume();
  if (isInProgress) response.end(`{"status":"Pulling"}\n${JSON.stringify({ errorDetail: { message: reason } })}\n`);
  else response.writeHead(500).end(JSON.stringify({ message: reason }));
});

const WORDS: readonly [SandboxErrorCode, string][] = [
  ["unavailable", 'Get "https://registry.example/v2/": dial tcp: lookup registry.example: no such host'],
  [
    "unavailable",
    'Get "https://registry.example/v2/": dial tcp: lookup registry.example: Temporary failure in name resolution',
  ],
  ["unavailable", 'Get "https://registry.example/v2/": dial tcp 192.0.2.1:443: connect: no route to host'],
  ["unavailable", 'Get "https://registry.example/v2/": dial tcp 192.0.2.1:443: connect: network is unreachable'],
  ["unavailable", 'Get "https://registry.example/v2/": dial tcp 192.0.2.1:443: connect: connection timed out'],
  ["unavailable", "read tcp 192.0.2.2:1-\u003e192.0.2.1:443: read: connection reset by peer"],
  ["unavailable", 'Get "https://registry.example/v2/": context deadline exceeded'],
  [
    "unavailable",
    'Get "https://registry.example/v2/": net/http: request canceled while waiting for connection (Client.Timeout exceeded while awaiting headers)',
  ],
  ["unavailable", 'Get "https://registry.example/v2/": EOF'],
  ["unavailable", "received unexpected HTTP status: 503 Service Unavailable"],
  ["unavailable", "unexpected status code https://registry.example/v2/one/manifests/1: 502 Bad Gateway"],
  [
    "unavailable",
    "unexpected status from HEAD request to https://registry.example/v2/one/manifests/1: 503 Service Unavailable",
  ],
  ["internal", "unexpected status from HEAD request to https://registry.example/v2/one/manifests/1: 418 I'm a teapot"],
  ["unauthenticated", "unauthorized: authentication required"],
  ["not_found", "manifest for registry.example/one:1 not found: manifest unknown: manifest unknown"],
  ["no_space", "write /var/lib/docker/tmp/blob: no space left on device"],
  ["internal", "layers from manifest don't match image configuration"],
];

describe.each([
  ["at once", false],
  ["in its progress", true],
])("an engine that reports %s why a pull failed", (_, where) => {
  test.each(WORDS)("is %s: %s", async (code, words) => {
    [reason, isInProgress] = [words, where];
    const failure = pullImage(engine(), "registry.example/one:1");
    await expect(failure).rejects.toMatchObject({ code, message: `Pulling registry.example/one:1 failed: ${words}` });
    await expect(failure).rejects.toMatchObject({ retryable: code === "unavailable" });
  });

  test("says how the limit of a registry is raised", async () => {
    [reason, isInProgress] = ["toomanyrequests: You have reached your unauthenticated pull rate limit.", where];
    await expect(pullImage(engine(), "registry.example/one:1")).rejects.toMatchObject({
      code: "unavailable",
      retryable: true,
      hint: "docker login registry.example, which raises the limit",
    });
  });
});
