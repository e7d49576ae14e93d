import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { SandboxError } from "../../contracts/errors.js";
import { findCommand } from "../../src/cli/commands/find-command.js";
import { parseCommandLine } from "../../src/cli/commands/parse.js";
import { removeEach } from "../../src/cli/remove-each.js";
import { Interruption } from "../../src/cli/terminal/interruption.js";
import { Screen } from "../../src/cli/terminal/screen.js";

test("many are removed one after the other, and those that are left when the program is to end stay", async () => {
  const [interruption, stdout, stderr] = [new Interruption(), new PassThrough(), new PassThrough()];
  const parsed = parseCommandLine(findCommand("rm"), ["one", "two", "three", "four"]);
  const invocation = { ...parsed, screen: new Screen(stdout, stderr, {}), interruption };
  const tried: string[] = [];
  const removed = await removeEach(parsed.operands, invocation, async (id) => {
    tried.push(id);
    if (id === "two") interruption.end("SIGINT");
  });
  expect(removed).toEqual(["one", "two"]);
  expect(tried).toEqual(removed);
  expect(String(stdout.read())).toBe("one\ntwo\n");
});

test("when one cannot be removed, the error says which are gone", async () => {
  const parsed = parseCommandLine(findCommand("rm"), ["one", "two", "three", "--json"]);
  const screen = new Screen(new PassThrough(), new PassThrough(), {});
  const removing = removeEach(parsed.operands, { ...parsed, screen, interruption: new Interruption() }, async (id) => {
    if (id === "three") throw new SandboxError("conflict", "in use", { hint: "wait" });
  });
  const error = { code: "conflict", message: "in use", hint: "wait", partial: { removed: ["one", "two"] } };
  await expect(removing).rejects.toMatchObject(error);
});
