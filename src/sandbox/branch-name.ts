const SHAPE = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,99}$/;

/** Tells why a text cannot be the name of a branch; undefined when it can. Stricter than git itself. */
export function branchNameFault(name: string): string | undefined {
  if (!SHAPE.test(name)) return `it must match ${SHAPE.source}`;
  if (name === "HEAD") return "HEAD is reserved";
  if (name.includes("..")) return 'it contains ".."';
  if (name.includes("//")) return 'it contains "//"';
  if (name.endsWith("/")) return 'it ends with "/"';
  if (name.endsWith(".")) return 'it ends with "."';
  for (const part of name.split("/")) {
    if (part.startsWith(".")) return 'a part of it starts with "."';
    if (part.endsWith(".lock")) return 'a part of it ends with ".lock"';
  }
  return undefined;
}
