import { formatDuration, type Reporter, type RunEvent } from "../../../harness.js";
import { toInertLine } from "../../../util/inert-text.js";
import { isoTime } from "../../../util/iso-time.js";
import type { Output, Style } from "../../terminal.js";
import { nodeLine } from "./node-line.js";

const HEARTBEAT = 60_000;

/** Reports a run in plain lines with the time of day, and once a minute that a slow node is still running. */
export function createPlainReporter(
  output: Output,
  style: Style,
  heartbeat: number = HEARTBEAT,
): Reporter & { stop(): void } {
  let running: { id: string; since: number } | undefined;
  const say = (text: string): void => {
    output.write(`${isoTime().slice(11, 19)} ${text}\n`);
  };
  const timer = setInterval(() => {
    if (running !== undefined) say(`… ${running.id} still runs, for ${formatDuration(Date.now() - running.since)}`);
  }, heartbeat);
  timer.unref();
  return {
    event(event: RunEvent) {
      switch (event.type) {
        case "run.started":
          return say(`run ${event.runId}: ${toInertLine(event.blueprint)} on ${toInertLine(event.repo)}`);
        case "sandbox.ready":
          return say(`sandbox ${event.sandboxId} (${event.backend})`);
        case "node.started":
          running = { id: event.nodeId, since: Date.now() };
          return say(`▸ ${event.nodeId}`);
        case "node.finished":
          running = undefined;
          return say(nodeLine(event.result, style, event.parentId !== undefined).trimEnd());
        case "node.skipped":
          return say(`∙ ${event.nodeId} skipped: ${toInertLine(event.reason)}`);
        case "warning":
          return say(`! ${toInertLine(event.message)}`);
        case "retry.scheduled":
          return say(`↻ ${event.nodeId} again in ${formatDuration(event.delayMs)}: ${toInertLine(event.reason)}`);
        case "limit.hit":
          return say(`◆ the ${event.limit} limit is reached`);
        default:
          return;
      }
    },
    stop: () => clearInterval(timer),
  };
}
