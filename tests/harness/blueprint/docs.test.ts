import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { driverOf } from "../../../src/harness/agents.js";
import { agentNames, loadBlueprint, readBlueprint } from "../../../src/harness.js";

const read = (name: string): string =>
  readFileSync(fileURLToPath(new URL(`../../../docs/${name}.md`, import.meta.url)), "utf8");
const blocks = (name: string): string[] =>
  [...read(name).matchAll(/^```yaml\n([\s\S]*?)```/gm)].map(([, text = ""]) => text);

test("the blueprints in the documents are valid", async () => {
  const whole = blocks("blueprints");
  const nodes = blocks("agents").map((text) => `name: x\nnodes:\n${text.replace(/^/gm, "  ")}`);
  expect([whole.length, nodes.length]).toEqual([2, 3]);
  for (const text of [...whole, ...nodes]) expect((await readBlueprint(text, "docs")).faults).toEqual([]);
});

test("the table of agents says what the drivers say", () => {
  for (const name of agentNames().filter((agent) => !["acp", "command"].includes(agent))) {
    const driver = driverOf({ agent: name, prompt: "", network: { allow: [] }, limits: {} });
    const row = read("agents")
      .split("\n")
      .find((line) => line.startsWith(`| \`${name}\``));
    for (const secret of driver.secrets.flat()) expect(row).toContain(`\`${secret}\``);
    expect(row).toContain(`${driver.minVersion} or later`);
    expect(row?.split("|").at(-2)?.trim()).toMatch(driver.reportsCost ? /^(?:yes|if it knows the price)$/ : /^no$/);
  }
});

test("the built-in blueprints are in the table", async () => {
  for (const name of ["bug-fix", "hello", "test-and-report"]) {
    expect(read("blueprints")).toContain(`| \`${name}\``);
    expect((await loadBlueprint(name)).name).toBe(name);
  }
});
