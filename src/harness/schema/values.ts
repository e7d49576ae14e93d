import { defined } from "../../util/defined.js";
import type { Fault, FieldPath } from "../../util/schema.js";
import { parseDuration } from "../../util/schema.js";
import type { Duration, LimitsSpec, RunLimits } from "../node-types.js";

/** Takes what is wrong at a place of a document. */
export type ReportFault = (fault: Fault) => void;

/** A duration in milliseconds; anything else is reported. */
export function toMs(value: Duration | undefined, place: FieldPath, report: ReportFault): number | undefined {
  if (value === undefined) return undefined;
  const ms = parseDuration(value);
  if (ms === undefined)
    report({ place, message: `${JSON.stringify(value)} is not a duration; write for example 90s, 10m or 2h` });
  return ms;
}

/** The limits that are given. */
export function toLimits(spec: LimitsSpec = {}, place: FieldPath, report: ReportFault): Partial<RunLimits> {
  return defined({
    wall: toMs(spec.wall, [...place, "wall"], report),
    costUsd: spec.costUsd,
    turns: spec.turns,
    idle: toMs(spec.idle, [...place, "idle"], report),
  });
}

/** A name as an id; undefined when nothing of it can be one. */
export function slugOf(name: string): string | undefined {
  const slug = name
    .normalize("NFKD")
    .replace(/[^A-Za-z0-9_]+/g, "-")
    .replace(/^[^A-Za-z]+|-+$/g, "")
    .slice(0, 64);
  return slug === "" ? undefined : slug;
}
