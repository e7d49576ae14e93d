const MOST_ROUNDS = 4;

/** Decodes the escapes of a URL byte by byte: what isn't UTF-8, or no escape, must not hide the rest. */
export function decodeBytes(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_all, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}

/** A path as the most lenient server would understand it: the same text for all that some server takes for the same path. */
export function lenientPath(path: string): string {
  let text = path;
  for (let round = 0; round < MOST_ROUNDS && text !== decodeBytes(text); round++) text = decodeBytes(text);
  const kept: string[] = [];
  for (const segment of text.toLowerCase().replaceAll("\\", "/").split("/")) {
    const name = segment.replace(/[;?#\0].*$/s, "").replace(/\s+$/, "");
    if (name === "..") kept.pop();
    else if (name !== "" && name !== ".") kept.push(name);
  }
  return `/${kept.join("/")}`;
}
