import { constants } from "node:os";
import { invalidArgument } from "../../util/schema.js";

/** The name of a signal, if it is one. */
export function signalOf(name: string): string {
  if (!Object.hasOwn(constants.signals, name)) throw invalidArgument("signal", "the name of a signal", name);
  return name;
}

/** A number of columns or rows, if it is one. */
export function sizeOf(size: number): number {
  if (Number.isInteger(size) && size >= 1 && size <= 65_535) return size;
  throw invalidArgument("size", "whole numbers from 1 to 65535", size);
}
