import { expect, test } from "vitest";
import { canContinue, packSessions, sessionFoldersOf, unpackSessions } from "../../src/harness/run/agent-sessions.js";
import { defineBlueprint, needsOf } from "../../src/harness.js";
import { useSandbox } from "../support/harness/engine-run.js";
import { driverNamed } from "../support/harness/replay-agent.js";

const place = useSandbox();

const sh = async (script: string): Promise<string> => {
  const { stdout } = await place.sandbox.exec({ argv: ["/bin/sh", "-c", `cd && ${script}`], check: true });
  return stdout;
};

const foldersOf = (agent: string): string[] =>
  sessionFoldersOf(
    needsOf(defineBlueprint({ name: "x", nodes: [{ kind: "agent", id: "a", agent, prompt: "p" }] })).agents,
  );

test("folders and files with sessions come back, with what is in them and nothing beside them", async () => {
  await sh("mkdir -p kept/deep other && echo one > kept/deep/a && echo two > other/store.db && echo key > other/login");
  const archive = await packSessions(place.sandbox, ["kept", "other/store.db", "other/store.db-wal", "never made"]);
  await sh("rm -r kept other");
  await unpackSessions(place.sandbox, archive);
  expect(await sh("cat kept/deep/a other/store.db; ls -A other")).toBe("one\ntwo\nstore.db\n");
});

test("where no agent has made a session, nothing is packed", async () => {
  const archive = await packSessions(place.sandbox, ["never made", "nor this"]);
  expect(archive.length).toBe(0);
  await unpackSessions(place.sandbox, archive);
});

const SECRETS = ['the "first" value\n', "value\nof the second", "short"];

test("what an agent has seen of the secrets is not saved, and the rest comes back as it was", async () => {
  const overlapping = 'the "first" value\nof the second';
  const log = `${JSON.stringify({ text: JSON.stringify(SECRETS), plain: overlapping })}\n`;
  const { sandbox } = place;
  const argv = ["/bin/sh", "-c", "mkdir -p ~/seen && tee ~/seen/log.jsonl"];
  await sandbox.exec({ argv, stdin: log, check: true });
  const archive = Buffer.from(await packSessions(sandbox, ["seen"], SECRETS)).toString();
  expect(archive).not.toMatch(/first|second|value/);
  await sh("rm -r seen");
  await unpackSessions(sandbox, Buffer.from(archive));
  const kept = await sh("cat seen/log.jsonl");
  expect(kept).toHaveLength(log.length);
  const { text, plain } = JSON.parse(kept) as { text: string; plain: string };
  expect(plain).toMatch(/^\*+$/);
  expect((JSON.parse(text) as string[])[2]).toBe("short");
});

test("a database that has a secret is not saved: it could not be read without it", async () => {
  await sh("mkdir -p db && echo 'the second of them' > db/store.db && echo x > db/store.db-wal");
  const folders = ["db/store.db", "db/store.db-wal"];
  await expect(packSessions(place.sandbox, folders, ["the second"])).rejects.toMatchObject({ code: "unsupported" });
  expect(await packSessions(place.sandbox, folders, ["another secret"])).not.toHaveLength(0);
});

test.each([
  ["claude-code", [".claude/projects"]],
  ["codex", [".codex/sessions"]],
  ["copilot", [".copilot/session-state"]],
  ["gemini-cli", [".gemini/tmp"]],
  ["pi", [".pi/agent/sessions"]],
  ["opencode", ["", "-wal", "-shm"].map((end) => `.local/share/opencode/opencode.db${end}`)],
])("the sessions of %s are saved, and its logins are not", (agent, folders) => {
  expect(foldersOf(agent)).toEqual(folders);
});

test.each([
  ["claude-code", [true, true]],
  ["codex", [true, true]],
  ["copilot", [true, true]],
  ["pi", [true, true]],
  ["gemini-cli", [true, false]],
  ["opencode", [true, false]],
])("a resumed %s finds its session at the same path, and elsewhere where it can", (agent, found) => {
  expect([true, false].map((isSamePlace) => canContinue(driverNamed(agent), isSamePlace))).toEqual(found);
});
