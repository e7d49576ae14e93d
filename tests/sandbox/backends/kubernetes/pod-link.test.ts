import { expect, test } from "vitest";
import { linkToPod } from "../../../../src/sandbox/backends/kubernetes/pod-link.js";
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
