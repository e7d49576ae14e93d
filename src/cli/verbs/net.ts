import { setTimeout as delay } from "node:timers/promises";
import { SandboxError } from "../../../contracts/errors.js";
import type { NetworkEvent } from "../../../contracts/types.js";
import { listSandboxes, openNetworkJournal, type SandboxInfo } from "../../sandbox.js";
import { toInertLine } from "../../util/inert-text.js";
import { UsageError } from "../commands.js";
import { findSandboxId } from "../find-id.js";
import type { Invocation } from "../invocation.js";
import { formatTable, type Screen } from "../terminal.js";

const PAUSE = 200;

/** `glovebox net`: what a sandbox has reached, and what was blocked. */
export async function run(invocation: Invocation): Promise<number> {
  const { flags, operands, screen } = invocation;
  const [given] = operands;
  if (flags.has("sets")) {
    if (given !== undefined || flags.has("follow")) {
      throw new UsageError("--sets shows no sandbox", "remove the sandbox, or --sets");
    }
    return await showSets(invocation);
  }
  if (given === undefined) throw new UsageError("net needs a sandbox", "glovebox ls lists them");
  const id = (await findSandbox(await findSandboxId(given))).id;
  if (flags.has("follow")) return await follow(id, invocation);
  const journal = openNetworkJournal(id);
  const sums = summarize(journal.read());
  journal.close();
  if (flags.has("json")) await screen.printJson(sums);
  else if (sums.length === 0) await screen.printNote("no connection of this sandbox has been seen");
  else await screen.print(tableOf(sums, screen));
  return 0;
}

async function findSandbox(reference: string): Promise<SandboxInfo> {
  const found = (await listSandboxes()).find(({ id, name }) => id === reference || name === reference);
  if (found !== undefined) return found;
  throw new SandboxError("not_found", `No sandbox with the id or name "${reference}"`, {
    hint: "glovebox ls lists them",
  });
}

async function follow(id: string, { flags, screen, interruption }: Invocation): Promise<number> {
  const journal = openNetworkJournal(id);
  try {
    for (;;) {
      // Before it is read: what comes last is then read as well.
      const isOpen = await isOpenSandbox(id);
      for (const event of journal.read()) {
        if (flags.has("json")) await screen.printJsonLine(event);
        else await screen.print(`${toInertLine(lineOf(event))}\n`);
      }
      if (!isOpen || interruption.ending !== undefined) return 0;
      await delay(PAUSE, undefined, { signal: interruption.signal }).catch(() => undefined);
    }
  } finally {
    journal.close();
  }
}

async function isOpenSandbox(id: string): Promise<boolean> {
  return (await listSandboxes()).some((sandbox) => sandbox.id === id && sandbox.alive);
}

/** One host and rule, and all that happened by it. */
interface Sum {
  readonly decision: NetworkEvent["decision"];
  readonly host: string;
  readonly port?: number;
  readonly rule: string;
  count: number;
  sent: number;
  received: number;
}

function summarize(events: readonly NetworkEvent[]): Sum[] {
  const sums = new Map<string, Sum>();
  for (const { event, decision, host, port, rule, sent = 0, received = 0 } of events) {
    if (event === "request") continue;
    const key = JSON.stringify([decision, host, port, rule]);
    const sum = sums.get(key) ?? {
      decision,
      host,
      ...(port !== undefined && { port }),
      rule,
      count: 0,
      sent: 0,
      received: 0,
    };
    if (event !== "close") sum.count++;
    sum.sent += sent;
    sum.received += received;
    sums.set(key, sum);
  }
  return [...sums.values()];
}

function tableOf(sums: readonly Sum[], screen: Screen): string {
  const head = ["DECISION", "HOST", "RULE", "COUNT", "SENT", "RECEIVED"].map((title) => screen.style.bold(title));
  const rows = sums.map(({ decision, rule, count, sent, received, ...place }) =>
    [decision, placeOf(place), rule, `${count}`, sizeOf(sent), sizeOf(received)].map(toInertLine),
  );
  return formatTable([head, ...rows]);
}

function lineOf({
  time,
  event,
  rule,
  method,
  sent = 0,
  received = 0,
  durationMs = 0,
  secrets,
  ...place
}: NetworkEvent): string {
  const facts = {
    open: `allowed by ${rule}`,
    request: `${method ?? ""}${secrets === undefined ? "" : ` with ${secrets.join(", ")}`}`,
    close: `sent ${sizeOf(sent)}, received ${sizeOf(received)}, ${(durationMs / 1000).toFixed(1)} s`,
    blocked: rule,
  }[event];
  return `${time.slice(11, 19)} ${event.padEnd(7)} ${placeOf(place)} ${facts}`;
}

function placeOf({ host, port }: { host: string; port?: number }): string {
  const name = host.includes(":") ? `[${host}]` : host;
  return port === undefined ? name : `${name}:${port}`;
}

function sizeOf(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const [unit, size] = bytes < 1e6 ? ["kB", 1e3] : bytes < 1e9 ? ["MB", 1e6] : ["GB", 1e9];
  return `${(bytes / (size as number)).toFixed(1)} ${unit}`;
}

async function showSets({ flags, screen, interruption }: Invocation): Promise<number> {
  const { listNameSets } = await import("../../harness.js");
  const sets = await listNameSets(interruption.signal);
  if (flags.has("json")) await screen.printJson(sets);
  else {
    const rows = sets.map(({ name, for: users, allow, reason = "" }) => [
      `@${name}`,
      users,
      allow.join(", ") || reason,
    ]);
    const head = ["SET", "KIND", "HOSTS"].map((title) => screen.style.bold(title));
    await screen.print(formatTable([head, ...rows.map((row) => row.map(toInertLine))]));
  }
  return 0;
}
