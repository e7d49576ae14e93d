import type { Duplex } from "node:stream";
import { expect, test } from "vitest";
import { linkToPod } from "../../../../src/sandbox/backends/kubernetes/pod-link.js";
import { acceptExec } from "../../../support/kubernetes/exec-peer.js";
import { failure, startScriptedApi } from "../../../support/kubernetes/scripted-api.js";

const place = { namespace: "team", pod: "p", uid: "u", container: "sandbox", program: "/guest" };

test("a connection that was given up while it was being made may be tried again", async () => {
  await using api = await startScriptedApi((_request, response) => failure(response, 404, "NotFound", "not found"));
  const giveUp = new AbortController();
  // The server takes the request and never answers, as when nothing moves on the way.
  api.onUpgrade = () => giveUp.abort();
  const link = linkToPod(api.client(), place);
  const listening = link.listen("start", 0, giveUp.signal)[Symbol.asyncIterator]().next();
  const error: unknown = await listening.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toMatchObject({ code: "aborted" });
  expect(link.verdict(error)).toBeUndefined();
});

test("a server that starts again may refuse at first what it knows to be allowed, but not when nothing worked before", async () => {
  await using api = await startScriptedApi((_request, response) => failure(response, 403, "Forbidden", "no"));
  const link = linkToPod(api.client(), place);
  const listen = async (): Promise<unknown> => {
    const listening = link.listen("start", 0, AbortSignal.timeout(5_000))[Symbol.asyncIterator]();
    return await listening.next().then(
      () => undefined,
      (error: unknown) => error,
    );
  };
  const refuse = (_request: unknown, socket: Duplex): void => {
    const body = JSON.stringify({ kind: "Status", code: 403, reason: "Forbidden", message: "RBAC: not yet" });
    socket.end(`HTTP/1.1 403 Forbidden\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
  };
  api.onUpgrade = refuse;
  expect(link.verdict(await listen())).toMatchObject({ code: "permission_denied" });
  api.onUpgrade = (request, socket) => acceptExec(request, socket, "v5.channel.k8s.io").close(1006);
  expect(link.verdict(await listen())).toBeUndefined();
  api.onUpgrade = refuse;
  const again = await listen();
  expect(again).toMatchObject({ code: "permission_denied" });
  expect(link.verdict(again)).toBeUndefined();
});
