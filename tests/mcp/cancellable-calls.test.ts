import { expect, it } from "vitest";
import { CancellableCalls } from "../../src/mcp/protocol/cancellable-calls.js";

const ended = async (signal: AbortSignal): Promise<string> =>
  await new Promise((resolve) => signal.addEventListener("abort", () => resolve("cancelled")));

it("cancels the call of a client by its number, and no other", async () => {
  const calls = new CancellableCalls();
  let isOver = false;
  const other = calls.run("another", 1, ended).then(() => {
    isOver = true;
  });
  const text = calls.run("one", "1", ended);
  const own = calls.run("one", 1, ended);
  calls.cancel("one", 2);
  calls.cancel("one", 1);
  expect(await own).toBe("cancelled");
  calls.cancel("one", 1);
  calls.cancel("one", "1");
  expect(await text).toBe("cancelled");
  expect(isOver).toBe(false);
  calls.cancel("another", 1);
  await other;
});

it("cancels none of two calls that have the same number", async () => {
  const calls = new CancellableCalls();
  const over: string[] = [];
  const first = calls.run("one", 1, ended).then(() => over.push("first"));
  const second = calls.run("one", 1, async () => {
    calls.cancel("one", 1);
    await Promise.resolve();
    over.push("second");
  });
  await second;
  expect(over).toEqual(["second"]);
  // Now there is only one.
  calls.cancel("one", 1);
  await first;
  expect(over).toEqual(["second", "first"]);
});
