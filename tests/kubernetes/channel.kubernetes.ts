import { setTimeout as delay } from "node:timers/promises";
import { expect, it } from "vitest";
import { connectCluster } from "../../src/sandbox/backends/kubernetes/client/connect.js";
import { openWebSocket } from "../../src/sandbox/backends/kubernetes/client/web-socket.js";
import { describeUnless } from "../support/describe-unless.js";
import { testCluster, whyNoTestCluster } from "../support/kubernetes/cluster.js";
import { podOf } from "../support/kubernetes/harness.js";
import { useKubePlace } from "../support/kubernetes/place.js";

const SIZE = 256 << 20;
/** What a message may have, and one byte more. */
const TOO_LONG = (32 << 20) + (1 << 20);

describeUnless(whyNoTestCluster(), "the channel to a pod", {}, () => {
  const place = useKubePlace("channel");

  it("holds 256 MiB back for a reader that is slow, in bounded memory", async () => {
    await using sandbox = await place.open();
    global.gc?.();
    const before = process.memoryUsage.rss();
    let most = 0;
    let bytes = 0;
    let pauses = 0;
    const result = await sandbox.exec({
      argv: ["head", "-c", String(SIZE), "/dev/zero"],
      timeout: 200_000,
      maxOutput: 1_024,
      async onStdout(chunk) {
        bytes += chunk.length;
        most = Math.max(most, process.memoryUsage.rss() - before);
        // Ten times, for as long as it takes to send all of it.
        if (bytes > (pauses + 1) * (SIZE / 11)) {
          pauses += 1;
          await delay(500);
        }
      },
    });
    expect({ exitCode: result.exitCode, bytes: result.bytes.stdout, seen: bytes }).toEqual({
      exitCode: 0,
      bytes: SIZE,
      seen: SIZE,
    });
    expect(pauses).toBeGreaterThan(5);
    expect(most).toBeLessThan(96 << 20);
  });

  it("sends 64 MiB in, more than any message may have", async () => {
    await using sandbox = await place.open();
    const { stdout } = await sandbox.exec({ argv: ["wc", "-c"], stdin: Buffer.alloc(64 << 20) });
    expect(stdout.trim()).toBe(String(64 << 20));
  });

  it("ends without a status when a message is too long, which is never taken for success", async () => {
    await using sandbox = await place.open();
    const client = await connectCluster({ kubeconfig: testCluster().kubeconfig, namespace: place.namespace });
    const pod = await podOf(place.namespace, sandbox);
    const path = `/api/v1/namespaces/${place.namespace}/pods/${pod}/exec`;
    const query = { container: "sandbox", command: ["cat"], stdin: true, stdout: true, stderr: true, tty: false };
    const messages: number[] = [];
    let closed: (code: number | undefined) => void = () => undefined;
    const end = new Promise<number | undefined>((resolve) => {
      closed = resolve;
    });
    const events = {
      message: (payload: Buffer) => void messages.push(payload[0] ?? -1),
      drained: () => undefined,
      closed,
    };
    const socket = await openWebSocket(client, { path, query }, ["v4.channel.k8s.io"], events);
    socket.send(Uint8Array.of(0), Buffer.alloc(TOO_LONG));
    // The code is that of a good end, or there is none: whether the server still sends its close frame is a matter of luck.
    expect([1000, undefined]).toContain(await end);
    expect(messages).not.toContain(3);
    expect(await sandbox.shell("echo here")).toMatchObject({ stdout: "here\n" });
    client.close();
  });
});
