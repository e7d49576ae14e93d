import { sep } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import { openBeneath, readIn } from "../../util/beneath.js";

const MAX_FILES = 5_000;
const MAX_BYTES = 64 * 1024 * 1024;

/** The files that are searched for imports. */
export const SCANNED: RegExp = /\.[cm]?[jt]sx?$/;
/** What `require` tries, beside the path as it is written. */
export const TRIED: readonly string[] = ["", ".js", ".json", ".cjs", ".mjs", "/index.js"];

/** What the parts of one bundle are put into. */
export class BundleDraft {
  readonly files: Map<string, Uint8Array> = new Map();
  readonly links: Map<string, string> = new Map();
  /** The folders of packages that were taken whole. */
  readonly packages: Set<string> = new Set();
  #bytes = 0;

  /** The top of the repository; nothing above it is read. */
  readonly top: string;

  constructor(top: string) {
    this.top = top;
  }

  /** Takes a file; more than a blueprint can need is `limit_exceeded`. */
  add(name: string, bytes: Uint8Array): void {
    this.files.set(name, bytes);
    this.#bytes += bytes.length;
    if (this.files.size <= MAX_FILES && this.#bytes <= MAX_BYTES) return;
    throw new SandboxError(
      "limit_exceeded",
      `The blueprint imports more than ${MAX_FILES} files or ${MAX_BYTES} bytes from its repository`,
      { operation: "blueprint", hint: "bundle it into one file, or import less" },
    );
  }

  /** The bytes of a file below the top, reached without a link; undefined when there is no such file. */
  read(name: string): Buffer | undefined {
    const parts = name.split(sep);
    try {
      using directory = openBeneath(this.top, parts.slice(0, -1));
      return readIn(directory, parts.at(-1) ?? "", MAX_BYTES);
    } catch (error) {
      const { code } = error as SandboxError;
      if (code === "not_found" || code === "not_regular_file" || code === "invalid_path") return undefined;
      throw error;
    }
  }
}
