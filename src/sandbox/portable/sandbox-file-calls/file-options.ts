import { SandboxError } from "../../../../contracts/errors.js";
import type {
  FileCallOptions,
  FileContent,
  ReadStreamOptions,
  UploadOptions,
  WriteFileOptions,
} from "../../../../contracts/types.js";
import * as is from "../../../util/schema.js";
import { check, invalidArgument, type Schema } from "../../../util/schema.js";
import type { FileUpload } from "../../types.js";

const BYTES = "a string or a Uint8Array";
const bytes: Schema<string | Uint8Array> = is.custom((value, name) => {
  if (!isBytes(value)) throw invalidArgument(name, BYTES, value);
});
const mode: Schema<number> = is.whole(0, 0o777, "permission bits from 0 to 0o777");
const position: Schema<number> = is.whole(0, Number.MAX_SAFE_INTEGER, "a position in bytes, 0 or more");
const { signal } = is;

/** What each kind of file call takes beside its paths. */
export const fileOptions: {
  readonly plain: Schema<FileCallOptions>;
  readonly write: Schema<WriteFileOptions>;
  readonly upload: Schema<UploadOptions>;
  readonly stat: Schema<FileCallOptions & { follow?: boolean }>;
  readonly list: Schema<FileCallOptions & { details?: boolean }>;
  readonly tree: Schema<FileCallOptions & { recursive?: boolean }>;
  readonly read: Schema<ReadStreamOptions>;
} = {
  plain: is.object({ signal }),
  write: is.object({ mode, signal }),
  upload: is.object({ select: is.callback(), signal }),
  stat: is.object({ follow: is.flag, signal }),
  list: is.object({ details: is.flag, signal }),
  tree: is.object({ recursive: is.flag, signal }),
  read: is.and(is.object<ReadStreamOptions>({ start: position, end: position, signal }), (value, name) => {
    const { start = 0, end } = value;
    if (end !== undefined && end < start)
      throw invalidArgument(`${name}.end`, `a position from start (${start}) on`, end);
  }),
};

const uploads: Schema<readonly FileUpload[]> = is.list(
  is.object<FileUpload>({ path: is.required(is.path), content: is.required(bytes), mode }),
);

/** Refuses a list of files that could not be written. */
export function checkUploads(files: unknown): asserts files is readonly FileUpload[] {
  check(files, uploads, "files");
}

/** Refuses what cannot be added to a file. */
export function checkBytes(value: unknown, name: string): asserts value is string | Uint8Array {
  check(value, bytes, name);
}

/** The stream, if the content of a file is one; refuses what is no content at all. */
export function streamIn(content: FileContent, name: string): AsyncIterable<Uint8Array> | undefined {
  if (isBytes(content)) return undefined;
  if (content instanceof ReadableStream && content.locked) {
    throw new SandboxError("invalid_argument", `Invalid ${name}: expected a stream that nobody else reads`, {
      hint: "release the lock of its reader, or pass on what that reader reads",
    });
  }
  if (typeof content === "object" && content !== null && Symbol.asyncIterator in content) return content;
  throw invalidArgument(name, `${BYTES}, a ReadableStream or an AsyncIterable of Uint8Array`, content);
}

/** The bytes of content that is no stream. */
export function toBytes(content: string | Uint8Array): Uint8Array {
  return typeof content === "string" ? Buffer.from(content) : content;
}

function isBytes(value: unknown): value is string | Uint8Array {
  return typeof value === "string" || value instanceof Uint8Array;
}
