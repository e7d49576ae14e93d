import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SandboxArchiveLimits, WorkspaceArchiveData } from "@openai/agents-core/sandbox";
import { SandboxError } from "../../../contracts/errors.js";
import type { Sandbox } from "../../../contracts/sandbox.js";
import { defined } from "../../util/defined.js";
import { packDirectory } from "../../util/tar/tar-pack.js";
import { unpackTar } from "../../util/tar/tar-unpack.js";
import { sandboxes } from "./load-agents.js";

/** The workspace as a tar archive, without the paths to leave out. */
export async function packWorkspace(sandbox: Sandbox, leftOut: ReadonlySet<string>): Promise<Uint8Array> {
  return await inScratch(async (scratch) => {
    const copy = await sandbox.exportDirectory(sandbox.workDir, join(scratch, "workspace"));
    const chunks: Uint8Array[] = [];
    const select = (path: string): "take" | "skip" => (leftOut.has(path) ? "skip" : "take");
    for await (const chunk of packDirectory(copy, { select })) chunks.push(chunk);
    return Buffer.concat(chunks);
  });
}

/** Unpacks an untrusted tar archive over the workspace. One that leads outside or has too much of anything changes nothing. */
export async function unpackWorkspace(
  sandbox: Sandbox,
  data: WorkspaceArchiveData,
  limits: SandboxArchiveLimits | null | undefined,
): Promise<void> {
  const bytes = typeof data === "string" ? Buffer.from(data) : new Uint8Array(data);
  const { maxInputBytes, maxExtractedBytes, maxMembers } = sandboxes.resolveSandboxArchiveLimits(limits) ?? {};
  if (typeof maxInputBytes === "number" && bytes.byteLength > maxInputBytes) {
    throw new SandboxError("limit_exceeded", `The archive has ${bytes.byteLength} bytes, more than ${maxInputBytes}`);
  }
  await inScratch(async (scratch) => {
    const place = join(scratch, "workspace");
    const bounds = { maxBytes: maxExtractedBytes ?? undefined, maxEntries: maxMembers ?? undefined };
    await unpackTar(oneChunk(bytes), place, defined(bounds));
    await sandbox.refreshFromHost(place, sandbox.workDir);
  });
}

async function* oneChunk(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

async function inScratch<T>(work: (scratch: string) => Promise<T>): Promise<T> {
  const scratch = await mkdtemp(join(tmpdir(), "glovebox-archive-"));
  try {
    return await work(scratch);
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
