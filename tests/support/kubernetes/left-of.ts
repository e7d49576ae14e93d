import { readdirSync } from "node:fs";
import { expect } from "vitest";
import { sandboxesDir } from "../../../src/machine/home.js";
import { objectsOfSandboxes } from "./harness.js";

/** Waits until there is nothing of sandboxes in the cluster or in the ledger. */
export async function expectNothingLeft(namespace: string, timeout = 60_000): Promise<void> {
  await expect.poll(() => objectsOfSandboxes(namespace), { timeout }).toEqual([]);
  expect(readdirSync(sandboxesDir())).toEqual([]);
}
