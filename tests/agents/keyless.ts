import { join } from "node:path";
import { expect } from "vitest";
import type { HarnessOptions } from "../../src/harness.js";
import { filesWith } from "../support/harness/files-with.js";
import { NODE_24 } from "../support/run/runtimes.js";
import { type AgentBench, PROGRAMS } from "./agent-bench.js";
import { Stage, say } from "./stage.js";
import { SUBJECTS } from "./subjects.js";

/** What `search-inside.mjs` prints. */
interface Searched {
  readonly placeholder: string;
  readonly readable: { readonly processes: number; readonly memories: number; readonly files: number };
  /** Where the value is. */
  readonly value: readonly string[];
  /** Where the placeholder is, which shows that the search finds something. */
  readonly control: readonly string[];
}

/** An agent whose key stays outside, and the header in which its service wants it. */
export interface Keyless {
  readonly program: string;
  readonly variable: string;
  readonly prefix: string;
  readonly header: string;
  readonly scheme: string;
}

/** The agents whose keys stay outside. */
export const KEYLESS: readonly Keyless[] = [
  { program: "claude", variable: "ANTHROPIC_API_KEY", prefix: "sk-ant-", header: "x-api-key", scheme: "" },
  { program: "codex", variable: "OPENAI_API_KEY", prefix: "sk-", header: "authorization", scheme: "Bearer " },
  { program: "pi", variable: "ANTHROPIC_API_KEY", prefix: "sk-ant-", header: "x-api-key", scheme: "" },
  { program: "opencode", variable: "OPENAI_API_KEY", prefix: "sk-", header: "authorization", scheme: "Bearer " },
  { program: "gemini", variable: "GEMINI_API_KEY", prefix: "glovebox", header: "x-goog-api-key", scheme: "" },
  {
    ...{ program: "copilot", variable: "COPILOT_PROVIDER_API_KEY" },
    ...{ prefix: "glovebox", header: "authorization", scheme: "Bearer " },
  },
];

/** Has a real agent work whose key is not inside: it searches for it, and its service gets it. */
export async function expectKeyless(
  bench: AgentBench,
  { program, variable, prefix, header, scheme }: Keyless,
  options: Partial<HarnessOptions> & { runId: string },
): Promise<void> {
  const subject = SUBJECTS.find((each) => each.program === program);
  if (subject === undefined) throw new Error(`there is no ${program}`);
  const { runId } = options;
  // In two halves: else the search itself would bring the value inside.
  const halves = [`${prefix}the-real-value`, `-0123456789-${runId}`] as const;
  const key = halves.join("");
  await using gateway = await bench.openGateway({ tls: true });
  const script = join(PROGRAMS, "search-inside.mjs");
  const stage = new Stage(bench, gateway, subject, runId);
  stage.play([subject.shell(`${NODE_24.program} ${script} ${variable} ${halves.join(" ")}`), say("I have searched")]);
  process.env[variable] = key;
  try {
    const report = await bench.run(gateway, runId, [stage.node("work")], { env: subject.env(gateway.url), ...options });
    expect(report.error).toBeUndefined();
    expect(report.nodes[0]).toMatchObject({ status: "success", output: "I have searched" });
    expect(report.secrets).toEqual([{ name: variable, kept: "outside", hosts: [new URL(gateway.url).host] }]);
  } finally {
    delete process.env[variable];
  }
  // The service has the real key; everything inside has the placeholder.
  expect(stage.asked).toHaveLength(2);
  for (const { auth } of gateway.model.requests) expect(auth).toEqual({ [header]: scheme + key });
  expect(gateway.model.faults).toEqual([]);
  const found = searchedIn(stage.asked[1]?.texts ?? []);
  expect(found.placeholder).toMatch(new RegExp(`^${prefix}`));
  expect(found.placeholder).not.toBe(key);
  expect(found.value).toEqual([]);
  expect(found.control).toEqual(expect.arrayContaining([expect.stringMatching(/^\/proc\/\d+\/environ$/)]));
  expect(found.readable.processes).toBeGreaterThan(1);
  expect(found.readable.files).toBeGreaterThan(10);
  // Where the kernel lets a process read the memory of its parent, that was searched as well, and had the placeholder.
  expect(found.control.some((place) => place.endsWith("/mem"))).toBe(found.readable.memories > 0);
  // Nor is it in what the run left on this machine.
  expect(filesWith(key, [bench.harness.directoryOf(runId), bench.harness.stateOf(runId)])).toEqual([]);
}

/** The line of the search in the results of tools. */
export function searchedIn(texts: readonly string[]): Searched {
  const line = texts.flatMap((text) => text.split("\n")).find((each) => each.includes('{"placeholder":')) ?? "";
  expect(line, texts.join("\n")).not.toBe("");
  return JSON.parse(line.slice(line.indexOf("{"))) as Searched;
}
