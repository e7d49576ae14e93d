import { statSync } from "node:fs";
import type { BatchShard } from "../../../batch.js";
import { UsageError } from "../../commands.js";

/** The directory of a batch: the one that is named, or the one next to a file of tasks. */
export function placeOf(path: string, shard?: BatchShard): string {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return path;
  const part = shard === undefined ? "" : `.${shard.index}-of-${shard.count}`;
  return `${path.replace(/\.(jsonl|ndjson|ya?ml|json)$/, "")}${part}.batch`;
}

/** Reads `2/4`. */
export function parseShard(flag: string, text: string): BatchShard {
  const [, index, count] = /^(\d{1,6})\/(\d{1,6})$/.exec(text) ?? [];
  const shard = { index: Number(index), count: Number(count) };
  if (shard.index >= 1 && shard.index <= shard.count) return shard;
  throw new UsageError(`${flag} takes i/n, not "${text}"`, `for example ${flag} 2/4, the second of four`);
}

/** Reads a sum of money in US dollars. */
export function parseMoney(flag: string, text: string): number {
  const sum = /^\$?\d+(\.\d+)?$/.test(text) ? Number(text.replace("$", "")) : 0;
  if (sum > 0) return sum;
  throw new UsageError(`${flag} takes a sum above zero, in US dollars, not "${text}"`, `for example ${flag} 2.50`);
}
