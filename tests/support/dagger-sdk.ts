import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { Client, ReturnType } from "../../node_modules/@dagger.io/dagger/dist/src/api/client.gen.js";
import { Context } from "../../node_modules/@dagger.io/dagger/dist/src/common/context.js";
import type { Sdk } from "../../src/sandbox/dagger/load-sdk.js";

// The very module that the SDK imports: it tells errors by their class.
const packages = join(import.meta.dirname, "..", "..", "node_modules");
const client = pathToFileURL(join(packages, "graphql-request", "build", "entrypoints", "main.js"));
const { GraphQLClient } = (await import(client.href)) as Pick<Sdk, "GraphQLClient">;

/**
 * The SDK's own classes without its entry, which takes two seconds of each process to load a compiler, too. The processes of
 * `dagger-process.test.ts` load that one.
 */
export const daggerSdk: Sdk = { Client, Context, GraphQLClient, ReturnType };
