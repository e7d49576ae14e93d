import { SandboxError } from "../../../contracts/errors.js";
import type { OpenDirectory } from "../../util/beneath.js";
import { endOfWholeCharacters } from "../../util/output-collector.js";
import { createRedactor, type RedactOptions, type Redactor } from "../../util/redact.js";
import type { NodeOutput, NodeReport, Reporter, RunEvent, RunEventBody, RunReport } from "../types.js";
import { EventLog } from "./event-log.js";
import { NodeLogs } from "./node-logs.js";
import { toOutputEvent } from "./output-event.js";
import { type RunDirectory, replaceFile } from "./run-directory.js";

/** What a recorder is made for. */
export interface RecorderOptions {
  readonly directory: RunDirectory;
  /** The report as it is at the start; changed during the run. */
  readonly report: RunReport;
  readonly nodeIds: readonly string[];
  readonly reporters: readonly Reporter[];
  readonly hidden: RedactOptions;
}

/** Writes down what happens in a run, updates the report, and calls the reporters. None of it can end the run. */
export class RunRecorder {
  readonly report: RunReport;
  readonly #directory: RunDirectory;
  readonly #opened: OpenDirectory;
  readonly #events: EventLog;
  readonly #logs: NodeLogs;
  readonly #reporters: readonly Reporter[];
  readonly #redactor: Redactor;
  readonly #cut = new Set<string>();
  readonly #names = new Map<string, string>();
  readonly #complained = new Set<string>();
  #line: Promise<void> = Promise.resolve();

  constructor({ directory, report, nodeIds, reporters, hidden }: RecorderOptions) {
    this.report = report;
    this.#directory = directory;
    // One for the whole run: to find the secrets of the environment anew costs more than to hide them.
    this.#redactor = createRedactor(hidden);
    this.#opened = directory.open();
    this.#events = new EventLog(this.#opened, report.runId, this.#redactor);
    this.#logs = new NodeLogs(directory, nodeIds);
    this.#reporters = reporters;
  }

  /** Takes an event; resolves once it is written and the reporters have seen it. */
  record(body: RunEventBody): Promise<void> {
    // One after the other, also when several come at once: the number of an event is its place in the file.
    this.#line = this.#line.then(() => this.#take(body));
    return this.#line;
  }

  /** Takes what a node printed: all of it into its log, the first of it into the events too. */
  recordOutput(output: NodeOutput): Promise<void> {
    this.#line = this.#line.then(() => this.#takeOutput(output));
    return this.#line;
  }

  /** Says something that the user should know and that is no failure. */
  async warn(message: string, nodeId?: string): Promise<void> {
    await this.record({ type: "warning", message, ...(nodeId !== undefined && { nodeId }) });
  }

  /** Writes `report.json` as it is now; a reader finds the old one or the new one. */
  saveReport(): void {
    this.#safely("report.json", () => {
      const text = `${this.#hide(JSON.stringify(this.report, undefined, 2))}\n`;
      replaceFile(this.#directory.state("report.json"), text);
      replaceFile(this.#opened.at("report.json"), text);
    });
  }

  /** Calls the reporters at the end, and closes the files. */
  async finish(): Promise<void> {
    await this.#line;
    for (const reporter of this.#reporters) {
      await this.#guard("runComplete", () => reporter.runComplete?.(this.report));
    }
    this.#logs.close();
    this.#events.close();
    this.#opened.close();
  }

  async #take(body: RunEventBody): Promise<void> {
    const kept = this.#note(body);
    const event = this.#append(kept);
    if (kept.type === "node.finished" || kept.type === "node.skipped") this.saveReport();
    for (const reporter of this.#reporters) await this.#call(reporter, kept, event);
  }

  async #takeOutput(output: NodeOutput): Promise<void> {
    const shown = this.#noteOutput(output);
    const event = shown === undefined ? undefined : this.#append(shown);
    for (const reporter of this.#reporters) {
      if (event !== undefined) await this.#guard("event", () => reporter.event?.(event));
      if (reporter.nodeBytes !== undefined) await this.#guard("nodeBytes", () => reporter.nodeBytes?.(output));
      if (reporter.nodeOutput === undefined) continue;
      const name = this.#names.get(output.nodeId) ?? output.nodeId;
      await this.#guard("nodeOutput", () => reporter.nodeOutput?.(name, toOutputEvent(output).text));
    }
  }

  #append(body: RunEventBody): RunEvent | undefined {
    let event: RunEvent | undefined;
    this.#safely("events.jsonl", () => {
      event = this.#events.append(body);
    });
    return event;
  }

  /** Takes into the report what belongs there; gives what of it goes into the events. */
  #note(body: RunEventBody): RunEventBody {
    switch (body.type) {
      case "node.started":
        this.#names.set(body.nodeId, body.name);
        return body;
      case "node.finished": {
        let { result } = body;
        this.#safely("the logs of a node", () => {
          result = this.#logs.finish(body.nodeId, body.parentId, body.result);
        });
        if (body.parentId === undefined) this.#noteNode(result);
        return { ...body, result };
      }
      case "warning":
        this.report.warnings.push(body.message);
        return body;
      default:
        return body;
    }
  }

  /** Writes output down; gives what of it goes into the events, if anything. */
  #noteOutput(output: NodeOutput): RunEventBody | undefined {
    let place = { room: 0, path: "" };
    this.#safely("the logs of a node", () => {
      place = this.#logs.write(output);
    });
    const { bytes } = output;
    if (place.room >= bytes.length) return toOutputEvent(output);
    if (this.#cut.has(place.path)) return undefined;
    this.#cut.add(place.path);
    const head = bytes.subarray(0, place.room);
    const event = toOutputEvent({ ...output, bytes: head.subarray(0, endOfWholeCharacters(head)) });
    return { ...event, text: `${event.text}\n[... the rest is in ${place.path} ...]\n` };
  }

  #noteNode(node: NodeReport): void {
    const { nodes } = this.report;
    const at = nodes.findIndex(({ id }) => id === node.id);
    if (at === -1) nodes.push(node);
    else nodes[at] = node;
  }

  async #call(reporter: Reporter, body: RunEventBody, event: RunEvent | undefined): Promise<void> {
    if (event !== undefined) await this.#guard("event", () => reporter.event?.(event));
    if (body.type === "node.started") await this.#guard("nodeStart", () => reporter.nodeStart?.(body.name, body.kind));
    if (body.type === "node.finished") {
      await this.#guard("nodeComplete", () => reporter.nodeComplete?.(body.result.name, body.result));
    }
  }

  async #guard(method: string, call: () => void | Promise<void>): Promise<void> {
    try {
      await call();
    } catch (error) {
      this.#complain(`a reporter failed in ${method}: ${messageOf(error)}`);
    }
  }

  #safely(what: string, write: () => void): void {
    try {
      write();
    } catch (error) {
      this.#complain(`${what} cannot be written: ${messageOf(error)}`);
    }
  }

  #hide(text: string): string {
    return this.#redactor.write(text) + this.#redactor.end();
  }

  /** Each message once: what fails now will fail at every event. */
  #complain(message: string): void {
    const text = this.#hide(message);
    if (this.#complained.has(text)) return;
    this.#complained.add(text);
    this.report.warnings.push(text);
  }
}

/** Not synced to disk: it is written after each node. */
function messageOf(error: unknown): string {
  return error instanceof SandboxError || error instanceof Error ? error.message : String(error);
}
