import { open } from "node:fs/promises";

/** The number of objects in a pack according to its header; git checks whether that is true. */
export async function countPackObjects(pack: string): Promise<number> {
  const handle = await open(pack);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(12), 0, 12, 0);
    return bytesRead === 12 ? buffer.readUInt32BE(8) : 0;
  } finally {
    await handle.close();
  }
}
