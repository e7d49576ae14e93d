import { expect, test } from "vitest";
import { countLines } from "../../../src/util/git/patch-lines.js";

test("lines of a patch are counted by its hunks, whatever they look like", () => {
  const patch = [
    "diff --git a/one b/one",
    "--- a/one",
    "+++ b/one",
    "@@ -1,3 +1,4 @@ heading",
    " same",
    "--- looks like a header",
    "+++ looks like one too",
    "+diff --git a/x b/x",
    " @@ -1 +1 @@",
    "\\ No newline at end of file",
    "diff --git a/two b/two",
    "Binary files a/two and b/two differ",
    "diff --git a/three b/three",
    "similarity index 100%",
    "diff --git a/four b/four",
    "@@ -1 +0,0 @@",
    "-gone",
    "",
  ].join("\n");
  expect(countLines(patch)).toEqual([
    { added: 2, removed: 1 },
    { added: 0, removed: 0, isBinary: true },
    { added: 0, removed: 0 },
    { added: 0, removed: 1 },
  ]);
  expect(countLines("")).toEqual([]);
});
