import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { removeOwnTree, removeTree } from "../../src/machine/remove-tree.js";
import { createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;

beforeEach(() => {
  scratch = createScratch();
});

afterEach(() => scratch.remove());

const removers = [
  ["removeTree", removeTree],
  ["removeOwnTree", removeOwnTree],
] as const;

test.each(removers.flatMap(([name, remove]) => [3, 700].map((count) => [name, count, remove] as const)))(
  "%s takes a tree of %d files, and nothing that its links lead to",
  async (_name, count, remove) => {
    const outside = join(scratch.path, "outside");
    mkdirSync(outside);
    writeFileSync(join(outside, "canary"), "alive");
    const tree = join(scratch.path, "tree");
    mkdirSync(join(tree, "deep", "er"), { recursive: true });
    symlinkSync(outside, join(tree, "deep", "link"));
    for (let i = 0; i < count; i++) writeFileSync(join(tree, "deep", "er", `${i}`), "");
    await remove(tree);
    expect(existsSync(tree)).toBe(false);
    expect(readdirSync(outside)).toEqual(["canary"]);
    await remove(tree);
  },
);

test.each(removers)("%s refuses what no sandbox can own", async (_name, remove) => {
  for (const path of ["/", "/usr", "relative", scratch.home, `${scratch.path}/../x`]) {
    await expect(remove(path)).rejects.toMatchObject({ code: "invalid_path" });
  }
});
