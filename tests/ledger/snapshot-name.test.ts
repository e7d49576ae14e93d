import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import {
  findSnapshotRecord,
  readSnapshotRecords,
  snapshotName,
  withSnapshotName,
  writeSnapshotRecord,
} from "../../src/ledger.js";
import { check } from "../../src/util/schema.js";
import { createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;
beforeEach(() => {
  scratch = createScratch({ ownEtc: true });
});
afterEach(() => scratch.remove());

let made = 0;
async function make(): Promise<string> {
  const id = `plain-${randomBytes(8).toString("hex")}`;
  made += 1;
  await writeSnapshotRecord({ version: 1, id, sandboxId: "one", backend: "x", createdAt: new Date().toISOString() });
  return id;
}
const named = (name: string): Promise<string> => withSnapshotName(name, make, {});

test("of many that ask for one name at once, one gets it, and the others make nothing", async () => {
  made = 0;
  const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => named("release")));
  const ids = outcomes.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  expect(ids).toHaveLength(1);
  expect(made).toBe(1);
  for (const each of outcomes) {
    if (each.status === "rejected") expect(each.reason).toMatchObject({ code: "conflict", retryable: false });
  }
  expect(await readSnapshotRecords()).toMatchObject([{ id: ids[0], name: "release" }]);
  expect((await findSnapshotRecord("release")).id).toBe(ids[0]);
});

test("a snapshot that fails leaves its name free, and one that nobody waits for gets none", async () => {
  const fail = async (): Promise<string> => {
    throw new Error("no room");
  };
  await expect(withSnapshotName("free", fail, {})).rejects.toThrow("no room");
  const controller = new AbortController();
  const late = async (): Promise<string> => {
    controller.abort(new Error("given up"));
    return await make();
  };
  await expect(withSnapshotName("free", late, { signal: controller.signal })).rejects.toThrow("given up");
  await expect(findSnapshotRecord("free")).rejects.toMatchObject({ code: "not_found" });
  const id = await named("free");
  expect((await findSnapshotRecord("free")).id).toBe(id);
});

test("an id is found before a name, and no name can be one", async () => {
  const id = await make();
  await expect(named(id)).rejects.toMatchObject({ code: "conflict" });
  expect((await findSnapshotRecord(id)).id).toBe(id);
});

test("names that are too long, look like an id or could be a path are refused", () => {
  const isName = (name: string): boolean => {
    try {
      check(name, snapshotName, "name");
      return true;
    } catch (error) {
      expect(error).toMatchObject({ code: "invalid_argument" });
      return false;
    }
  };
  const good = ["a", "before-upgrade", "v1.2_x", "2026-11-18", "nightly-202611181200", "x".repeat(63), "facade-cafe"];
  const bad = [
    "",
    ".x",
    "-x",
    "A",
    "a/b",
    "..",
    "a b",
    "x".repeat(64),
    "0123456789abcdef",
    "0123456789abcdef-1-0a1b2c3d",
  ];
  const ids = ["docker-0a1b2c3d0a1b2c3d", "snapshot-0a1b2c3d0a1b", "folder-7c9e6679-7425-40de-944b-e07fc1f90ae7"];
  expect(good.filter((name) => !isName(name))).toEqual([]);
  expect([...bad, ...ids].filter(isName)).toEqual([]);
});
