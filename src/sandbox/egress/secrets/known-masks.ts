import { type PreparedBytes, prepareBytes } from "../../../util/redact.js";
import { maskedForms } from "./encodings.js";

/** What an answer must not contain, and what takes its place. */
export interface Mask {
  readonly text: Buffer;
  readonly label: Buffer;
}

/** A value, and the placeholder that commands have for it. */
export type Masked = readonly [value: string, placeholder: string];

/** All masks at a time. */
export interface MaskSet {
  readonly masks: readonly Mask[];
  /** Finds them. */
  readonly any: PreparedBytes;
  /** As `any`; what takes the place of a value is as long. */
  readonly framed: PreparedBytes;
}

/** The masks of a sandbox's secrets. Each value has many forms, so they are made once, and kept for as long as the value is. */
export class KnownMasks {
  #forms = new Map<string, Mask[]>();
  #last: MaskSet = toSet([]);

  /** The masks of these values. Those of others are forgotten. */
  of(values: readonly Masked[]): MaskSet {
    const forms = new Map<string, Mask[]>();
    for (const [value, placeholder] of values) {
      const key = `${placeholder} ${value}`;
      forms.set(key, this.#forms.get(key) ?? maskedForms([value], placeholder));
    }
    this.#forms = forms;
    const masks = [...forms.values()].flat();
    const known = this.#last.masks;
    const isSame = masks.length === known.length && masks.every((mask, at) => mask === known[at]);
    if (!isSame) this.#last = toSet(masks);
    return this.#last;
  }
}

/** What was known at the time of a request may be forgotten before its answer: the newest values only are kept. */
export function together(earlier: MaskSet | undefined, now: MaskSet): MaskSet {
  return earlier === undefined || earlier === now ? now : toSet([...earlier.masks, ...now.masks]);
}

function toSet(masks: readonly Mask[]): MaskSet {
  let [any, framed]: (PreparedBytes | undefined)[] = [];
  return {
    masks,
    get any() {
      any ??= prepareBytes(distinct(masks));
      return any;
    },
    get framed() {
      framed ??= prepareBytes(distinct(masks).map(ofSameLength));
      return framed;
    },
  };
}

/** Of two secrets with the same value, the first one shows. */
function distinct(masks: readonly Mask[]): Mask[] {
  const all = new Map<string, Mask>();
  for (const mask of masks) {
    const key = mask.text.toString("latin1");
    if (!all.has(key)) all.set(key, mask);
  }
  return [...all.values()];
}

/** Messages of gRPC, and the parts of compressed bodies, say how long they are, so what takes the place of a value has its length. */
function ofSameLength({ text, label }: Mask): Mask {
  return { text, label: Buffer.alloc(text.length, label) };
}
