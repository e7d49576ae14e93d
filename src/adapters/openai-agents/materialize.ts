import { readFile } from "node:fs/promises";
import { posix } from "node:path";
import type { Entry, Manifest } from "@openai/agents-core/sandbox";
import type { FileUpload, Sandbox } from "../../../contracts/sandbox.js";
import { cloneRepository } from "./clone-repository.js";
import { sandboxes } from "./load-agents.js";
import { findLocalSource } from "./local-source.js";

type Grants = Manifest["extraPathGrants"];

/** Puts the entries of a manifest into the sandbox: plain files at once, everything else in the manifest's order. Mounts are there already. */
export async function materializeManifest(sandbox: Sandbox, manifest: Manifest): Promise<void> {
  const files: FileUpload[] = [];
  for (const { absolutePath, entry } of manifest.iterEntries()) {
    if (entry.type === "file") files.push({ path: absolutePath, content: entry.content, mode: modeOf(entry) });
  }
  if (files.length > 0) await sandbox.uploadFiles(files);
  for (const { absolutePath, entry } of manifest.iterEntries()) {
    if (entry.type !== "file") await materializeOne(sandbox, absolutePath, entry, manifest.extraPathGrants);
  }
}

/** Puts one entry with everything below it into the sandbox. */
export async function materializeEntry(sandbox: Sandbox, path: string, entry: Entry, grants: Grants): Promise<void> {
  await materializeOne(sandbox, path, entry, grants);
  if (entry.type !== "dir") return;
  for (const [name, child] of Object.entries(entry.children ?? {})) {
    await materializeEntry(sandbox, posix.join(path, name), child, grants);
  }
}

async function materializeOne(sandbox: Sandbox, path: string, entry: Entry, grants: Grants): Promise<void> {
  switch (entry.type) {
    case "file":
      return await sandbox.uploadFiles([{ path, content: entry.content, mode: modeOf(entry) }]);
    case "dir":
      await sandbox.makeDirectory(path);
      break;
    case "local_file": {
      const source = await findLocalSource("local_file", entry.src, grants);
      return await sandbox.uploadFiles([{ path, content: await readFile(source), mode: modeOf(entry) }]);
    }
    case "local_dir":
      await sandbox.makeDirectory(path);
      await sandbox.refreshFromHost(await findLocalSource("local_dir", entry.src, grants), path);
      break;
    case "git_repo":
      await cloneRepository(sandbox, path, entry);
      break;
    default:
      return;
  }
  if (entry.permissions === undefined) return;
  await sandbox.exec("chmod", [modeOf(entry).toString(8), "--", path], { cwd: sandbox.workDir, check: true });
}

function modeOf(entry: Entry): number {
  return sandboxes.permissionsForSandboxEntry(entry.permissions).toMode() & 0o777;
}
