import { formatCost, formatDuration, formatTokens, type Reporter, type RunEvent } from "../../../harness.js";
import { countOf } from "../../../util/count-of.js";
import { toInertLine } from "../../../util/inert-text.js";
import { drawLiveLine, type Output, type Style } from "../../terminal.js";
import { nodeLine } from "./node-line.js";

const TICK = 120;
/** Bytes of the last line to look at; no terminal is wider. */
const LONGEST_LINE = 2048;
const FRAMES = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

interface Running {
  id: string;
  since: number;
  isChild: boolean;
  usage: string;
  last: string;
}

/** Shows a run on a terminal: a line for each finished node, and a live line for the current one. */
export function createLiveReporter(output: Output, style: Style): Reporter & { stop(): void } {
  let running: Running | undefined;
  let isDrawn = false;
  const clear = (): void => {
    if (isDrawn) output.write("\r\x1b[2K");
    isDrawn = false;
  };
  const draw = (): void => {
    if (running === undefined) return;
    const elapsed = Date.now() - running.since;
    const frame = FRAMES[Math.floor(elapsed / TICK) % FRAMES.length];
    const head = `${running.isChild ? "  ↻ " : " "}${frame} ${running.id} ${formatDuration(elapsed)}`;
    const line = [head, running.usage, running.last].filter((part) => part !== "").join(" · ");
    drawLiveLine(output, line);
    isDrawn = true;
  };
  const timer = setInterval(draw, TICK);
  timer.unref();
  const print = (line: string): void => {
    clear();
    output.write(`${line}\n`);
  };
  const start = (id: string, isChild: boolean): void => {
    running = { id, since: Date.now(), isChild, usage: "", last: "" };
    draw();
  };
  return {
    event(event: RunEvent) {
      switch (event.type) {
        case "run.started":
          return print(`${style.bold("glovebox")} ${toInertLine(event.blueprint)} · run ${event.runId}`);
        case "sandbox.creating":
          return start(`opening a ${event.backend} sandbox`, false);
        case "sandbox.ready":
          running = undefined;
          return clear();
        case "node.started":
          return start(event.nodeId, event.parentId !== undefined);
        case "agent.message":
          if (running !== undefined) running.last = lastLine(event.text) ?? running.last;
          return;
        case "agent.tool_call":
          if (running !== undefined) running.last = toInertLine(`${event.tool} ${event.summary}`.trim());
          return;
        case "agent.usage":
          if (running !== undefined) running.usage = usageOf(event);
          return;
        case "node.finished":
          running = undefined;
          return print(nodeLine(event.result, style, event.parentId !== undefined));
        case "node.skipped":
          return print(` ${style.dim("∙")} ${event.nodeId.padEnd(14)} ${toInertLine(event.reason)}`);
        case "warning":
          return print(`   ${style.warn("!")} ${toInertLine(event.message)}`);
        case "retry.scheduled":
          return print(
            `   ${style.warn("↻")} ${event.nodeId} again in ${formatDuration(event.delayMs)}: ${toInertLine(event.reason)}`,
          );
        case "limit.hit":
          return print(`   ${style.warn("◆")} the ${event.limit} limit is reached`);
        default:
          return;
      }
    },
    nodeBytes({ stream, bytes }) {
      if (running === undefined || stream === "transcript") return;
      running.last = lastLine(Buffer.from(bytes.subarray(-LONGEST_LINE)).toString("utf8")) ?? running.last;
    },
    stop() {
      clearInterval(timer);
      clear();
    },
  };
}

/** What an agent has used so far: its cost where it is known already, else its tokens. */
function usageOf({ turns, costUsd, usage }: Extract<RunEvent, { type: "agent.usage" }>): string {
  const tokens = usage.input + usage.output + usage.cacheRead + usage.cacheWrite;
  const spent = costUsd !== null ? formatCost(costUsd) : tokens > 0 ? `${formatTokens(tokens)} tokens` : undefined;
  return [countOf(turns, "turn"), spent].filter((part) => part !== undefined).join(", ");
}

function lastLine(text: string): string | undefined {
  const line = text.trimEnd().split("\n").at(-1);
  return line === undefined || line === "" ? undefined : toInertLine(line.trim());
}
