import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  type Stats,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import type { Machine } from "./machine.js";
import { readMultipart, writeMultipart } from "./multipart.js";
import { bodyOf, type Exchange, json, objectOf, Refusal } from "./reply.js";

const BOUNDARY = "DAYTONA-FILE-BOUNDARY";

/** Files of one sandbox. */
export async function handleFiles(machine: Machine, exchange: Exchange): Promise<boolean> {
  const { method, path, query, request, response } = exchange;
  const target = query.get("path") ?? "";
  const isBulk = path.startsWith("/files/bulk-");
  if (!isBulk && target === "") throw new Refusal(400, "path is required");
  if (path === "/files/folder" && method === "POST") {
    mkdirSync(machine.hostPath(target), { recursive: true, mode: modeOf(query) });
    json(response, 201);
  } else if (path === "/files" && method === "GET") {
    const folder = existing(machine, target).path;
    json(
      response,
      200,
      readdirSync(folder).flatMap((name) => described(join(folder, name))),
    );
  } else if (path === "/files/info" && method === "GET")
    json(response, 200, described(existing(machine, target).path)[0]);
  else if (path === "/files" && method === "DELETE") {
    const found = existing(machine, target);
    const recursive = query.get("recursive") === "true";
    if (found.stats.isDirectory() && !recursive)
      throw new Refusal(400, "cannot delete directory without recursive flag");
    rmSync(found.path, { recursive, force: true });
    json(response, 204);
  } else if (path === "/files/permissions" && method === "POST") {
    chmodSync(existing(machine, target).path, modeOf(query));
    json(response, 200);
  } else if (path === "/files/bulk-upload" && method === "POST") upload(machine, exchange, await bodyOf(request));
  else if (path === "/files/bulk-download" && method === "POST") {
    const { paths } = await objectOf(request);
    if (!Array.isArray(paths) || paths.length === 0) throw new Refusal(400, "request body must contain paths");
    download(machine, exchange, paths as string[]);
  } else return false;
  return true;
}

/** Each file is a part with its path and one with its content. What can be written is, whatever becomes of the others. */
function upload(machine: Machine, { request, response }: Exchange, body: Buffer): void {
  const files: { path: string; bytes: number }[] = [];
  const errors: string[] = [];
  const type = request.headers["content-type"] ?? "";
  if (!type.startsWith("multipart/form-data")) throw new Refusal(400, "invalid multipart form");
  const paths = new Map<string, string>();
  for (const part of readMultipart(type, body)) {
    const [, index = "", what] = /^files\[(\d+)\]\.(path|file)$/.exec(part.name) ?? [];
    if (what === "path") paths.set(index, part.body.toString("utf8").trim());
    if (what !== "file") continue;
    // It is written as it comes: where to must have been said before.
    const path = paths.get(index);
    if (path === undefined || path === "") {
      errors.push(`file ${part.name} missing path metadata`);
      continue;
    }
    try {
      const target = machine.hostPath(path);
      mkdirSync(dirname(target), { recursive: true });
      writeFileSync(target, part.body, { mode: 0o644 });
      files.push({ path, bytes: part.body.length });
    } catch (error) {
      errors.push(`${path}: ${String(error)}`);
    }
  }
  json(response, errors.length > 0 ? 400 : 200, errors.length > 0 ? { errors, files } : { files });
}

function modeOf(query: URLSearchParams): number {
  const mode = query.get("mode") ?? "";
  if (!/^[0-7]{3,4}$/.test(mode)) throw new Refusal(400, "invalid mode format");
  return Number.parseInt(mode, 8);
}

function download(machine: Machine, { response }: Exchange, paths: readonly string[]): void {
  const parts = paths.map((path) => {
    const name = `filename="${path}"; filename*=utf-8''${encodeURIComponent(path)}`;
    try {
      const { stats, path: found } = existing(machine, path);
      if (stats.isDirectory()) throw new Refusal(400, "path is a directory", "INVALID_FILE_PATH");
      const body = readFileSync(found);
      const head = `Content-Disposition: form-data; name="file"; ${name}\r\nContent-Type: application/octet-stream\r\nContent-Length: ${body.length}`;
      return { head, body };
    } catch (error) {
      const { status, message, code } = error instanceof Refusal ? error : new Refusal(400, String(error));
      const body = Buffer.from(JSON.stringify({ statusCode: status, message, code, source: "DAYTONA_DAEMON" }));
      return { head: `Content-Disposition: form-data; name="error"; ${name}\r\nContent-Type: application/json`, body };
    }
  });
  response.writeHead(200, { "Content-Type": `multipart/form-data; boundary=${BOUNDARY}` });
  response.end(writeMultipart(BOUNDARY, parts));
}

function existing(machine: Machine, path: string): { path: string; stats: Stats } {
  const found = machine.hostPath(path);
  try {
    return { path: found, stats: lstatSync(found) };
  } catch {
    throw new Refusal(404, `file not found: ${path}`, "FILE_NOT_FOUND");
  }
}

/** Links are followed, and those that lead nowhere are left out. */
function described(path: string): Record<string, unknown>[] {
  try {
    const stats = statSync(path);
    const time = stats.mtime.toISOString();
    const mode = (stats.mode & 0o777).toString(8).padStart(4, "0");
    const common = { name: basename(path), size: stats.size, mode, permissions: mode, modTime: time, modifiedAt: time };
    return [{ ...common, isDir: stats.isDirectory(), owner: "daytona", group: "daytona" }];
  } catch {
    return [];
  }
}
