import { open } from "node:fs/promises";

/** What the head of a pack says; git itself finds out whether that is true. */
export async function countPackObjects(pack: string): Promise<number> {
  const handle = await open(pack);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(12), 0, 12, 0);
    return bytesRead === 12 ? buffer.readUInt32BE(8) : 0;
  } finally {
    await handle.close();
  }
}
