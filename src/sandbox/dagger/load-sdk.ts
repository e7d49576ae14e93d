import type * as DaggerSdk from "@dagger.io/dagger";
import { SandboxError } from "../errors.js";

/** The SDK as the backend uses it. */
export type Sdk = Pick<typeof DaggerSdk, "Client" | "Context" | "GraphQLClient" | "ReturnType">;

/** Loads the SDK when it is first needed; `missing_dependency` with the install line when it is not there. */
export async function loadSdk(): Promise<Sdk> {
  try {
    return await import("@dagger.io/dagger");
  } catch (cause) {
    throw new SandboxError("missing_dependency", "The Dagger backend needs the package @dagger.io/dagger", {
      backend: "dagger",
      cause,
      hint: "npm install @dagger.io/dagger",
    });
  }
}
