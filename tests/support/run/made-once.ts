import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";

type Files = readonly { readonly path: string; readonly mode: number; readonly content: Buffer | undefined }[];

const made = new Map<string, Files>();

/** Makes a directory, and the same one again at any other place without the work: a repository takes a dozen processes. */
export function madeOnce(name: string, path: string, make: (path: string) => void): string {
  const isNew = !existsSync(path) || readdirSync(path).length === 0;
  const known = isNew ? made.get(name) : undefined;
  if (known === undefined) {
    make(path);
    if (isNew) made.set(name, filesOf(path, ""));
    return path;
  }
  mkdirSync(path, { recursive: true });
  for (const { path: inner, mode, content } of known) {
    const place = join(path, inner);
    if (content === undefined) mkdirSync(place, { recursive: true });
    else {
      mkdirSync(dirname(place), { recursive: true });
      writeFileSync(place, content);
      chmodSync(place, mode);
    }
  }
  return path;
}

function filesOf(root: string, folder: string): Files {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    const { mode } = statSync(join(root, path));
    if (entry.isDirectory()) return [{ path, mode, content: undefined }, ...filesOf(root, path)];
    return [{ path, mode, content: readFileSync(join(root, path)) }];
  });
}
