import type * as DaggerSdk from "@dagger.io/dagger";
import { SandboxError } from "../../../../contracts/errors.js";

const PACKAGE = "@dagger.io/dagger";

/** The SDK as the backend uses it. */
export type Sdk = Pick<typeof DaggerSdk, "Client" | "Context" | "GraphQLClient" | "ReturnType">;

/** Loads the SDK when it is first needed; `missing_dependency` with the install command if it is not installed. */
export async function loadSdk(): Promise<Sdk> {
  try {
    return await import("@dagger.io/dagger");
  } catch (cause) {
    // It imports packages that it does not declare, and fails if no other package has installed them.
    const missing = /Cannot find package '([^']+)'/.exec(String((cause as Error).message))?.[1] ?? PACKAGE;
    const what = missing === PACKAGE ? `the package ${PACKAGE}` : `${missing}, which ${PACKAGE} uses`;
    throw new SandboxError("missing_dependency", `The Dagger backend needs ${what}`, {
      backend: "dagger",
      cause,
      hint: `npm install ${missing}`,
    });
  }
}
