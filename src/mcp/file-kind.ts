/** What the first bytes of a file say about it. */
export type FileKind = { readonly is: "text" } | { readonly is: "image" | "binary"; readonly mimeType: string };

type Magic = readonly (readonly [mimeType: string, start: string, at?: number])[];

const IMAGES: Magic = [
  ["image/png", "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", "\xff\xd8\xff"],
  ["image/gif", "GIF87a"],
  ["image/gif", "GIF89a"],
  ["image/webp", "WEBPVP8", 8],
];

const OTHERS: Magic = [
  ["application/pdf", "%PDF-"],
  ["application/zip", "PK\x03\x04"],
  ["application/gzip", "\x1f\x8b"],
  ["application/x-elf", "\x7fELF"],
  ["application/vnd.sqlite3", "SQLite format 3\0"],
];

/** Tells texts, images and other files apart by their first bytes. */
export function kindOfFile(start: Uint8Array): FileKind {
  const text = Buffer.from(start).toString("latin1");
  const find = (kinds: Magic): string | undefined => kinds.find(([, magic, at = 0]) => text.startsWith(magic, at))?.[0];
  const image = find(IMAGES);
  if (image !== undefined) return { is: "image", mimeType: image };
  const other = find(OTHERS);
  if (other !== undefined) return { is: "binary", mimeType: other };
  return text.includes("\0") ? { is: "binary", mimeType: "application/octet-stream" } : { is: "text" };
}
