import { SandboxError } from "../../contracts/errors.js";
import type { Sandbox } from "../../contracts/sandbox.js";
import { createLimit } from "../util/limit.js";

/** What to replace, and by what. */
export interface FileEdit {
  path: string;
  old: string;
  new: string;
  /** Every occurrence. Otherwise there must be exactly one. */
  all?: boolean;
}

const lines = new WeakMap<Sandbox, ReturnType<typeof createLimit>>();

/** Replaces text in a file and returns how often. Edits of one sandbox wait for each other: models send several at once. */
export async function editFile(sandbox: Sandbox, edit: FileEdit, call: { signal?: AbortSignal }): Promise<number> {
  const inLine = lines.get(sandbox) ?? createLimit(1);
  lines.set(sandbox, inLine);
  return await inLine(() => replace(sandbox, edit, call));
}

async function replace(
  sandbox: Sandbox,
  { path, old, new: replacement, all = false }: FileEdit,
  call: { signal?: AbortSignal },
): Promise<number> {
  const found = await sandbox.readBytes(path, call);
  if (found === null) throw new SandboxError("not_found", `${path} does not exist`);
  // Bytes, as text would change those that are no UTF-8.
  const before = Buffer.from(found.buffer, found.byteOffset, found.byteLength);
  const wanted = Buffer.from(old);
  const pieces: Buffer[] = [];
  let from = 0;
  for (let at = before.indexOf(wanted); at !== -1; at = before.indexOf(wanted, from)) {
    pieces.push(before.subarray(from, at));
    from = at + wanted.length;
  }
  const count = pieces.length;
  if (count === 0) throw new SandboxError("not_found", `${path} does not contain the text of "old"`);
  if (count > 1 && !all) {
    const hint = 'give more of the text around it, or set "all"';
    throw new SandboxError("conflict", `${path} contains the text of "old" ${count} times`, { hint });
  }
  const insert = Buffer.from(replacement);
  await sandbox.writeFile(
    path,
    Buffer.concat([...pieces.flatMap((piece) => [piece, insert]), before.subarray(from)]),
    call,
  );
  return count;
}
