import type { Sdk } from "../../../src/sandbox/backends/dagger/load-sdk.js";

const entry = import.meta.resolve("@dagger.io/dagger");
const { Client, ReturnType } = (await import(new URL("api/client.gen.js", entry).href)) as Sdk;
const { Context } = (await import(new URL("common/context.js", entry).href)) as Sdk;
// A package of the SDK's, not of ours. Its errors are known by their class: it must be the form that the SDK loads.
const ofSdk = "graphql-request";
const { GraphQLClient } = (await import(ofSdk)) as Sdk;

/**
 * The SDK's own classes without its entry, which takes two seconds of each process to load a compiler, too. The processes of
 * `dagger-process.test.ts` load that one.
 */
export const daggerSdk: Sdk = { Client, Context, GraphQLClient, ReturnType };
