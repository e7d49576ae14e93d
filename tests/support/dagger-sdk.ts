import { createRequire } from "node:module";
import { Client, ReturnType } from "../../node_modules/@dagger.io/dagger/dist/src/api/client.gen.js";
import { Context } from "../../node_modules/@dagger.io/dagger/dist/src/common/context.js";
import type { Sdk } from "../../src/sandbox/dagger/load-sdk.js";

// As the SDK finds it: it is a package of the SDK's, not of ours.
const ofSdk = createRequire(import.meta.resolve("@dagger.io/dagger"));
const { GraphQLClient } = ofSdk("graphql-request") as Pick<Sdk, "GraphQLClient">;

/**
 * The SDK's own classes without its entry, which takes two seconds of each process to load a compiler, too. The processes of
 * `dagger-process.test.ts` load that one.
 */
export const daggerSdk: Sdk = { Client, Context, GraphQLClient, ReturnType };
