import { execFile } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const root = fileURLToPath(new URL("../..", import.meta.url));

test("the API report is that of the sources", async () => {
  const script = join(root, "scripts", "api.mjs");
  const { stderr } = await promisify(execFile)(process.execPath, [script, "--check"]).catch((error) => error);
  expect(stderr, "the public API changed: type npm run api, read the difference and commit it").toBe("");
});
