import { Refusal } from "./reply.js";

/** Whole cores and GiB. */
export interface Size {
  cpu: number;
  memory: number;
  disk: number;
}

const NAMES: readonly (readonly [keyof Size, string])[] = [
  ["cpu", "CPU"],
  ["memory", "Memory"],
  ["disk", "Disk"],
];
/** Snapshots that are always there. */
const BUILT_IN: ReadonlyMap<string, Size> = new Map([
  ["daytona-small", { cpu: 1, memory: 1, disk: 3 }],
  ["daytona-medium", { cpu: 2, memory: 4, disk: 8 }],
  ["daytona-large", { cpu: 4, memory: 8, disk: 10 }],
]);
/** Of an image of which nobody has said a size. */
const PLAIN: Size = { cpu: 1, memory: 1, disk: 3 };

/** The size of a snapshot that is always there. */
export function builtInSize(name: string): Size | undefined {
  return BUILT_IN.get(name);
}

/** The size that a request names, over one that it begins from. */
export function sizeOf(asked: Record<string, unknown>, from: Size = PLAIN): Size {
  const size = { ...from };
  for (const [key] of NAMES) if (typeof asked[key] === "number") size[key] = asked[key];
  return size;
}

/** Refuses what is over the limits of an organisation. */
export function assertWithin(most: Size, size: Size): void {
  for (const [key, name] of NAMES) {
    if (size[key] <= most[key]) continue;
    throw new Refusal(400, `${name} request ${size[key]} exceeds maximum allowed per sandbox (${most[key]})`);
  }
}

/** Refuses what a machine cannot become: one that runs only grows, and its disk never shrinks nor changes meanwhile. */
export function assertResizable(state: string, from: Size, to: Size): void {
  if (to.disk < from.disk) throw new Refusal(400, "Sandbox disk size cannot be decreased");
  if (state !== "started") return;
  if (to.disk !== from.disk) throw new Refusal(400, "Disk resize can only be performed on a stopped sandbox");
  if (to.cpu < from.cpu || to.memory < from.memory) {
    throw new Refusal(400, "Sandbox must be in stopped state to decrease the number of CPU cores or memory");
  }
}
