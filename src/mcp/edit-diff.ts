/** A replacement of one text by another at some places of a file. */
export interface Edit {
  readonly before: Buffer;
  /** Where the old text starts, rising. */
  readonly places: readonly number[];
  readonly old: Buffer;
  readonly replacement: Buffer;
}

const CONTEXT = 3;
const LINE_FEED = 0x0a;

/** The number of the line that a byte is in, from 1. */
export function lineOf(text: Buffer, place: number): number {
  let line = 1;
  for (let at = text.indexOf(LINE_FEED); at !== -1 && at < place; at = text.indexOf(LINE_FEED, at + 1)) line += 1;
  return line;
}

/** Some lines of a file, by their bytes, and what they become. */
interface Change {
  start: number;
  end: number;
  after: string;
}

/** The difference that an edit makes, in the unified form, with three lines around each change. */
export function editDiff(path: string, edit: Edit): string {
  const changes = wholeLines(edit);
  const lines = [`--- ${path}`, `+++ ${path}`];
  let shift = 0;
  for (let first = 0; first < changes.length; ) {
    let last = first;
    while (last + 1 < changes.length && isNear(edit.before, changes[last], changes[last + 1])) last += 1;
    const group = changes.slice(first, last + 1);
    const { text, removed, added, line } = hunkOf(edit.before, group);
    lines.push(`@@ -${line},${removed} +${line + shift},${added} @@`, ...text);
    shift += added - removed;
    first = last + 1;
  }
  return `${lines.join("\n")}\n`;
}

/** The edit as changes of whole lines; places on the same lines are one change. */
function wholeLines({ before, places, old, replacement }: Edit): Change[] {
  const changes: Change[] = [];
  const text = replacement.toString("utf8");
  for (const place of places) {
    const end = place + old.length;
    const previous = changes.at(-1);
    if (previous !== undefined && previous.end > place) {
      // The rest of its line was added as it was; this place is in that rest.
      const tail = previous.end - place;
      const kept = Buffer.from(previous.after);
      const head = kept.subarray(0, kept.length - tail).toString("utf8");
      Object.assign(previous, toLineEnd(before, end, head + text));
    } else {
      const start = startOfLine(before, place);
      changes.push({ start, ...toLineEnd(before, end, before.toString("utf8", start, place) + text) });
    }
  }
  return changes;
}

/** A text up to the end of a line of the file: if the edit took a line feed away, the next line belongs to it. */
function toLineEnd(before: Buffer, end: number, after: string): Pick<Change, "end" | "after"> {
  if (after === "" || after.endsWith("\n")) {
    if (end === 0 || before[end - 1] === LINE_FEED) return { end, after };
  }
  const lineEnd = endOfLine(before, end);
  return { end: lineEnd, after: after + before.toString("utf8", end, lineEnd) };
}

/** The position of the line that a byte is in. */
function startOfLine(text: Buffer, place: number): number {
  return place <= 0 ? 0 : text.lastIndexOf(LINE_FEED, place - 1) + 1;
}

/** The position after the line feed of the line that a byte is in. */
function endOfLine(text: Buffer, place: number): number {
  const at = text.indexOf(LINE_FEED, place);
  return at === -1 ? text.length : at + 1;
}

function isNear(text: Buffer, first: Change | undefined, second: Change | undefined): boolean {
  if (first === undefined || second === undefined) return false;
  return linesOf(text.toString("utf8", first.end, second.start)).length <= 2 * CONTEXT;
}

function hunkOf(
  before: Buffer,
  group: readonly Change[],
): { text: string[]; removed: number; added: number; line: number } {
  const [first, last] = [group[0] as Change, group.at(-1) as Change];
  let start = first.start;
  for (let count = 0; count < CONTEXT && start > 0; count += 1) start = startOfLine(before, start - 1);
  let end = last.end;
  for (let count = 0; count < CONTEXT && end < before.length; count += 1) end = endOfLine(before, end);
  const text: string[] = [];
  const [kept, gone, made] = [counter(" ", text), counter("-", text), counter("+", text)];
  let at = start;
  for (const change of group) {
    kept.add(before.toString("utf8", at, change.start));
    gone.add(before.toString("utf8", change.start, change.end));
    made.add(change.after);
    at = change.end;
  }
  kept.add(before.toString("utf8", at, end));
  return { text, removed: kept.count + gone.count, added: kept.count + made.count, line: lineOf(before, start) };
}

function counter(sign: string, text: string[]): { count: number; add(part: string): void } {
  return {
    count: 0,
    add(part) {
      const lines = linesOf(part);
      this.count += lines.length;
      text.push(...lines.map((line) => sign + line));
      if (part !== "" && !part.endsWith("\n")) text.push("\\ No newline at end of file");
    },
  };
}

function linesOf(text: string): string[] {
  if (text === "") return [];
  return (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
}
