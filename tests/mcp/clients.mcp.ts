import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Bench, createBench } from "../support/cli.js";
import { type Conversation, converse } from "../support/mcp/converse.js";
import { REAL_CLIENTS, whyNoClient } from "../support/mcp/real-clients.js";
import { processesWith } from "../support/processes/host-processes.js";
import { createRepository, git } from "../support/scratch.js";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
const BROKEN = "export const sum = (a, b) => a - b;\n";

let bench: Bench;
beforeAll(() => {
  bench = createBench();
});
afterAll(() => bench.remove());

describe.each(REAL_CLIENTS)("the real $title", (client) => {
  const slug = client.title.toLowerCase().replaceAll(" ", "-");

  test("drives the server that was installed in it", async ({ skip }) => {
    const reason = whyNoClient(client);
    if (reason !== undefined) return skip(reason);
    const project = createRepository(join(bench.path, slug));
    writeFileSync(join(project, "sum.mjs"), BROKEN);
    writeFileSync(
      join(project, "test.mjs"),
      'import { sum } from "./sum.mjs";\nif (sum(2, 3) !== 5) throw new Error("it is " + sum(2, 3));\n',
    );
    git(project, "add", "-A");
    git(project, "commit", "--quiet", "-m", "a sum");
    const install = ["mcp", "install", "--client", client.name, "--repo", project];
    expect((await bench.run(install)).code).toBe(0);
    expect((await bench.run(install)).stderr).toContain("is as it should be");

    await converse(client, { env: bench.env, project }, work(`${slug}-${process.pid}`));

    expect(await bench.run([...install, "--remove"])).toMatchObject({ code: 0 });
    await expect.poll(() => processesWith(`${bench.path}/`)).toEqual([]);
    // The model worked on a worktree of its own, which is gone with the server. Codex may end the server by SIGKILL, a moment after SIGTERM, and gives
    // it few variables, so that the home is the usual one.
    if (client.name === "codex") expect((await bench.run(["reap"], { env: { GLOVEBOX_HOME: "" } })).code).toBe(0);
    expect(readFileSync(join(project, "sum.mjs"), "utf8")).toBe(BROKEN);
    expect(git(project, "worktree", "list").split("\n")).toHaveLength(1);
  });
});

/** Finds a mistake, repairs it, follows a long command, meets an error, looks at an image, and gives a call up. */
async function* work(marker: string): Conversation {
  const exec = (command: string, more: Record<string, unknown> = {}) => ({ tool: "exec", input: { command, ...more } });
  const before = yield exec("node test.mjs");
  expect(before).toMatchObject({
    isError: false,
    text: expect.stringMatching(/^exit code 1\n[\s\S]*it is -1/) as string,
  });
  const edit = { path: "sum.mjs", old: "a - b", new: "a + b" };
  expect((yield { tool: "file_edit", input: edit }).text).toMatch(
    /-export const sum = .*a - b[\s\S]*\+export const sum/,
  );
  expect((yield exec("node test.mjs && git status --short")).text).toBe("exit code 0\n M sum.mjs");

  const started = yield exec("echo one; sleep 2; echo two >&2; exit 3", { yield_ms: 500 });
  expect(started.text).toMatch(/^still running, process_id \w+\none$/);
  const input = { process_id: /process_id (\w+)/.exec(started.text)?.[1], wait_ms: 45_000 };
  let later = yield { tool: "process_read", input };
  expect(later.text).toContain("two");
  // The output may come before the end.
  if (!later.text.startsWith("exit code")) later = yield { tool: "process_read", input };
  expect(later.text).toMatch(/^exit code 3\n/);

  expect(yield { tool: "file_read", input: { path: "nowhere.txt" } }).toMatchObject({
    isError: true,
    text: "not_found: There is no file nowhere.txt\nhint: exec with ls shows what there is",
  });
  expect(yield { tool: "exec", input: {} }).toMatchObject({
    isError: true,
    text: expect.stringMatching(/^invalid_argument: exec takes either command or argv\nhint: /) as string,
  });

  yield { tool: "file_write", input: { path: "/tmp/dot.png", content: PNG, encoding: "base64" } };
  expect((yield { tool: "file_read", input: { path: "/tmp/dot.png" } }).images).toEqual([PNG]);

  const running = (): unknown[] => processesWith(marker);
  const long = exec(`sh -c 'sleep 600; :' ${marker} & sleep 600`);
  yield { ...long, cutWhen: () => expect.poll(running).not.toEqual([]) };
  await expect.poll(running).toEqual([]);
  // The sandbox and its files are still there.
  expect((yield exec("cat sum.mjs")).text).toContain("a + b");
}
