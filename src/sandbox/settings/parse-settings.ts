import { SandboxError, toSandboxError } from "../../../contracts/errors.js";
import { check, type Schema } from "../../util/schema.js";
import { type FoundFile, readSettingsFile } from "./settings-file.js";

/** More than one would use by hand; far fewer than it takes to fill the memory. */
const MAX_ALIASES = 20;

const known = new Map<string, { readonly identity: string; readonly value: unknown }>();

/** Reads, checks and remembers a file of settings. Every error names the file. */
export async function loadSettings<T extends object>(
  { path, identity }: FoundFile,
  schema: Schema<T>,
  isUsers: boolean,
): Promise<T> {
  const remembered = known.get(path);
  if (remembered?.identity === identity) return remembered.value as T;
  try {
    const value: unknown = (await parseYaml(readSettingsFile(path, isUsers))) ?? {};
    check(value, schema, "the file");
    known.set(path, { identity, value });
    return value;
  } catch (error) {
    const { code, message, hint } = toSandboxError(error);
    throw new SandboxError(code, message.startsWith(path) ? message : `${path}: ${message}`, { cause: error, hint });
  }
}

async function parseYaml(text: string): Promise<unknown> {
  const { parseDocument } = await import("yaml");
  const document = parseDocument(text, { prettyErrors: true, uniqueKeys: true });
  const [fault] = document.errors;
  if (fault !== undefined) {
    const [message = "not YAML"] = fault.message.split("\n");
    throw new SandboxError("invalid_argument", message.replace(/:$/, ""), { cause: fault });
  }
  try {
    return document.toJS({ maxAliasCount: MAX_ALIASES }) as unknown;
  } catch (cause) {
    throw new SandboxError("limit_exceeded", "it has too many aliases", { cause });
  }
}
