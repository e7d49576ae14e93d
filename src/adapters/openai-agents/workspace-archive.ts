import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SandboxArchiveLimits, WorkspaceArchiveData } from "@openai/agents-core/sandbox";
import type { Sandbox } from "../../../contracts/sandbox.js";
import { defined } from "../../util/defined.js";
import { packDirectory } from "../../util/tar/tar-pack.js";
import { readTar } from "../../util/tar/tar-read.js";
import { unpackTar } from "../../util/tar/tar-unpack.js";
import { sandboxes } from "./load-agents.js";

/** As many headers as are read of an archive that may have any number of members. */
const MAX_HEADERS = 1_000_000;

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
  assertWithin("archive input size", bytes.byteLength, maxInputBytes);
  await inScratch(async (scratch) => {
    const place = join(scratch, "workspace");
    try {
      let [members, extracted] = [0, 0];
      for await (const { path, size } of readTar(oneChunk(bytes), MAX_HEADERS)) {
        members += 1;
        extracted += size;
        assertWithin("archive member count", members, maxMembers, path);
        assertWithin("archive extracted size", extracted, maxExtractedBytes, path);
      }
      // A hard link becomes a copy.
      await unpackTar(oneChunk(bytes), place, defined({ maxBytes: maxExtractedBytes ?? undefined }));
    } catch (error) {
      if (error instanceof sandboxes.SandboxArchiveError || !(error instanceof Error)) throw error;
      const { code } = error as { code?: unknown };
      throw new sandboxes.SandboxArchiveError(error.message, { provider: "glovebox", reason: code, cause: error });
    }
    await sandbox.refreshFromHost(place, sandbox.workDir);
  });
}

function assertWithin(what: string, actual: number, limit: number | null | undefined, member?: string): void {
  if (typeof limit !== "number" || actual <= limit) return;
  const details = { reason: `${what} exceeds limit`, limit, actual, ...(member !== undefined && { member }) };
  throw new sandboxes.SandboxArchiveError(`Workspace ${what} exceeds limit: ${actual} > ${limit}.`, details);
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
