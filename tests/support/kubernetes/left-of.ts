import { readdirSync } from "node:fs";
import { expect, vi } from "vitest";
import { listRecords } from "../../../src/ledger.js";
import { sandboxesDir } from "../../../src/machine/home.js";
import { namesIn } from "./cluster.js";
import { objectsOfSandboxes } from "./harness.js";

/** Waits until there is nothing of sandboxes in the cluster or in the ledger. */
export async function expectNothingLeft(namespace: string, timeout = 60_000): Promise<void> {
  await expect.poll(() => objectsOfSandboxes(namespace), { timeout }).toEqual([]);
  expect(readdirSync(sandboxesDir())).toEqual([]);
}

/**
 * The same for a namespace of a test that runs at the same time as others, whose sandboxes are in the ledger, too. That nothing at all is left there,
 * their place checks after all of them.
 */
export async function expectNothingLeftIn(namespace: string): Promise<void> {
  // `expect` itself polls for one test at a time.
  await vi.waitFor(async () => expect(await objectsOfSandboxes(namespace)).toEqual([]), { timeout: 60_000 });
  const records = (await listRecords()).map((entry) => JSON.stringify(entry));
  expect(records.filter((record) => record.includes(`"namespace":"${namespace}"`))).toEqual([]);
}

/** The policies of tasks in a namespace. */
export async function policiesOfTasks(namespace: string): Promise<string[]> {
  const names = await namesIn(namespace, "apis/networking.k8s.io/v1/networkpolicies");
  return names.filter((name) => name.startsWith("glovebox-task-"));
}
