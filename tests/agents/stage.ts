import type { HarnessOptions, NodeSpec, RunReport } from "../../src/harness.js";
import type { AgentBench, Gateway } from "./agent-bench.js";
import type { ModelRequest, Script, Turn } from "./model-server.js";
import { type Subject, USED } from "./subjects.js";

const LONGEST_ID = 60;

/** What one case has: an agent, a model of its own, and runs. */
export class Stage {
  readonly subject: Subject;
  readonly bench: AgentBench;
  readonly gateway: Gateway;
  /** Of the one run that a case has. */
  readonly runId: string;

  constructor(bench: AgentBench, gateway: Gateway, subject: Subject, id: string) {
    this.bench = bench;
    this.gateway = gateway;
    this.subject = subject;
    const slug = `${subject.name}-${id}`.toLowerCase().replace(/[^a-z0-9]+/g, "-");
    this.runId = slug.slice(0, LONGEST_ID).replace(/-$/, "");
    if (subject.asksAside === true) gateway.model.aside(({ tools }) => tools.length === 0, { text: "a title" });
  }

  /** What the model says to the turns of the agent. */
  play(script: Script): void {
    this.gateway.model.play(script);
  }

  /** The requests for turns, without those that are for something else. */
  get asked(): readonly ModelRequest[] {
    const { requests } = this.gateway.model;
    return this.subject.asksAside === true ? requests.filter(({ tools }) => tools.length > 0) : requests;
  }

  node(id: string, more: Record<string, unknown> = {}): NodeSpec {
    const { task } = this.subject;
    return { id, kind: "agent", ...task, prompt: `the prompt of ${id}`, retry: { max: 0 }, ...more } as NodeSpec;
  }

  /** What every run of the case is given. */
  get options(): Pick<HarnessOptions, "env" | "secretSource"> {
    return { env: this.subject.env(this.gateway.url), secretSource: this.subject.secrets };
  }

  run(nodes: NodeSpec[], more: Partial<HarnessOptions> = {}): Promise<RunReport> {
    return this.bench.run(this.gateway, this.runId, nodes, { ...this.options, limits: { wall: 150_000 }, ...more });
  }
}

/** A turn that says something, and uses so many times the usual tokens. */
export function say(text: string, times = 1): Turn {
  return { text, usage: { input: USED.input * times, output: USED.output * times } };
}
