import { Client, ReturnType } from "../../node_modules/@dagger.io/dagger/dist/src/api/client.gen.js";
import { Context } from "../../node_modules/@dagger.io/dagger/dist/src/common/context.js";
import { GraphQLClient } from "../../node_modules/graphql-request/build/entrypoints/main.js";
import type { Sdk } from "../../src/sandbox/dagger/load-sdk.js";

/**
 * The SDK's own classes without its entry, which takes two seconds of each process to load a compiler, too. The processes of
 * `dagger-process.test.ts` load that one.
 */
export const daggerSdk: Sdk = { Client, Context, GraphQLClient, ReturnType };
