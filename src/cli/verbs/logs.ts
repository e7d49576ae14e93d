import { closeSync, constants, readSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { findRunDirectory, isRunning, type RunEvent } from "../../harness.js";
import { openIn } from "../../util/beneath.js";
import { findRunId } from "../find-id.js";
import type { Invocation } from "../invocation.js";
import { createSink } from "../terminal.js";

const PAUSE = 200;
const CHUNK = 64 * 1024;

/** `glovebox logs <run> [node] [-f] [--json]`. */
export async function run({ operands, flags, screen, interruption }: Invocation): Promise<number> {
  const [given = "", nodeId] = operands;
  const runId = await findRunId(given);
  const directory = await findRunDirectory(runId);
  const sink = createSink(screen, screen.stdout, { colours: true });
  const show = async (line: string): Promise<void> => {
    const event = parseEvent(line);
    const isWanted = event !== undefined && (nodeId === undefined || isAbout(event, nodeId));
    if (!isWanted) return;
    if (flags.has("json")) return await screen.printJsonLine(event);
    const text = textOf(event, nodeId);
    if (text !== "") await sink.write(Buffer.from(text));
  };
  using opened = directory.open();
  const file = openIn(opened, "events.jsonl", constants.O_RDONLY);
  try {
    const reader = new LineReader(file);
    for (;;) {
      // Ask before reading, so that nothing written before the end is missed.
      const goesOn = flags.has("follow") && (await isRunning(directory)) && interruption.ending === undefined;
      for (const line of reader.lines()) await show(line);
      if (!goesOn) break;
      await delay(PAUSE);
    }
  } finally {
    closeSync(file);
  }
  await sink.end();
  return 0;
}

/** The file is in the repository, where anything may write to it: lines that are not events are skipped. */
function parseEvent(line: string): RunEvent | undefined {
  try {
    const event = JSON.parse(line) as Partial<Record<string, unknown>> | null;
    const isEvent = typeof event?.["type"] === "string" && typeof (event["text"] ?? "") === "string";
    return isEvent ? (event as unknown as RunEvent) : undefined;
  } catch {
    return undefined;
  }
}

function isAbout(event: RunEvent, node: string): boolean {
  return ("nodeId" in event && event.nodeId === node) || ("parentId" in event && event.parentId === node);
}

function textOf(event: RunEvent, wanted: string | undefined): string {
  if (!("nodeId" in event)) return "";
  const { nodeId } = event;
  if (event.type === "node.started" && wanted === undefined) return `── ${nodeId}\n`;
  if (event.type === "agent.message") return `${event.text}\n`;
  return event.type === "node.output" && event.stream !== "transcript" ? event.text : "";
}

/** Reads whole lines of a growing file. */
class LineReader {
  readonly #file: number;
  #at = 0;
  #rest: Buffer = Buffer.alloc(0);

  constructor(file: number) {
    this.#file = file;
  }

  *lines(): Generator<string> {
    for (;;) {
      const chunk = Buffer.alloc(CHUNK);
      const count = readSync(this.#file, chunk, 0, CHUNK, this.#at);
      if (count === 0) return;
      this.#at += count;
      let bytes = Buffer.concat([this.#rest, chunk.subarray(0, count)]);
      for (let end = bytes.indexOf(10); end !== -1; end = bytes.indexOf(10)) {
        yield bytes.toString("utf8", 0, end);
        bytes = bytes.subarray(end + 1);
      }
      this.#rest = bytes;
    }
  }
}
