import { SandboxError } from "../errors.js";
import { findRepository, type Repository } from "./repository.js";

/** The repository that the option `repo` names. */
export async function findSource(repo: string): Promise<Repository> {
  if (/^[a-z][a-z0-9+.-]*::?\/\/|^[^/]+@[^/]+:|^[a-z]+::/i.test(repo)) {
    throw new SandboxError("unsupported", `A URL is not taken as repo yet: "${repo}"`, {
      hint: "clone it first and name the directory",
    });
  }
  return await findRepository(repo);
}
