import { SandboxError, type SandboxErrorCode } from "../../../contracts/errors.js";
import { mastra } from "./load-mastra.js";

type MakeError = (path: string, operation: string) => Error;

const MASTRA_ERRORS: Readonly<Partial<Record<SandboxErrorCode, MakeError>>> = {
  not_found: (path) => new mastra.FileNotFoundError(path),
  not_regular_file: (path) => new mastra.IsDirectoryError(path),
  invalid_path: (path) => new mastra.NotDirectoryError(path),
  path_confinement: (path, operation) => new mastra.PermissionError(path, operation),
  permission_denied: (path, operation) => new mastra.PermissionError(path, operation),
};

/** Runs a file call and rethrows what failed as the error that Mastra has for it. */
export async function withMastraErrors<T>(path: string, operation: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const make = error instanceof SandboxError ? MASTRA_ERRORS[error.code] : undefined;
    throw make === undefined ? error : Object.assign(make(path, operation), { cause: error });
  }
}
