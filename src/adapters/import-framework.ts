import { SandboxError } from "../../contracts/errors.js";

/** Loads the framework of an adapter; `missing_dependency` with the install command if it is not installed. */
export async function importFramework<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load();
  } catch (cause) {
    const { code, message } = cause as { code?: string; message?: string };
    const missing =
      code === "ERR_MODULE_NOT_FOUND" ? /Cannot find package '([^']+)'/.exec(message ?? "")?.[1] : undefined;
    if (missing === undefined) throw cause;
    // A framework may lack a package of its own.
    const what = missing === name ? `the package ${name}` : `${missing}, which ${name} uses`;
    throw new SandboxError("missing_dependency", `This adapter needs ${what}`, {
      cause,
      hint: `npm install ${missing}`,
    });
  }
}
