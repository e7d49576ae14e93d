import type { SandboxOptions } from "../sandbox/types.js";
import { backendNames, backendOf } from "../sandbox.js";
import { defined } from "../util/defined.js";

/**
 * Whether a backend works on a repository of this machine, in which the harness clones, resolves refs and makes branches. Any other clones a
 * URL by itself.
 */
export async function usesRepositoryHere(backend: string): Promise<boolean> {
  return (await backendOf(backend)).runsHere === true;
}

/** The registered backends that do, for a hint. */
export async function backendsWithRepositoryHere(): Promise<string[]> {
  const names: string[] = [];
  for (const name of backendNames()) if (await usesRepositoryHere(name).catch(() => false)) names.push(name);
  return names;
}

/** Whether much output of a sandbox costs little, so that a list of all files is hashed here and not there. */
export async function isOutputCheap({ backend }: { readonly backend: string }): Promise<boolean> {
  return await usesRepositoryHere(backend);
}

/** Whether an option of a sandbox belongs to one backend. */
export function isBackendOption(name: string): boolean {
  return backendNames().includes(name);
}

/** The options of a backend that may be written to the plan of a run. Any other has to be given again when the run is resumed. */
export async function writtenOptionsOf(backend: string): Promise<readonly string[]> {
  return (await backendOf(backend).catch(() => undefined))?.writtenOptions ?? [];
}

/** The options of the sandbox in those of a run. The spec names `daytona` as an option of the run itself. */
export function sandboxOptionsIn(run: {
  sandbox?: SandboxOptions | undefined;
  daytona?: NonNullable<SandboxOptions["daytona"]>;
}): SandboxOptions {
  return { ...run.sandbox, ...defined({ daytona: run.daytona }) };
}

/** Whether a backend can open the network of a sandbox for a while and close it again. */
export async function canCloseNetwork(backend: string, options: SandboxOptions): Promise<boolean> {
  return (await backendOf(backend)).canOpenNetwork?.(options) === true;
}
