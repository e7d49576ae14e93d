import type { ApplyPatchOperation, ApplyPatchResult, Editor } from "@openai/agents-core";
import type { Sandbox } from "../../../contracts/sandbox.js";
import { agents, sandboxes } from "./load-agents.js";
import { withSdkErrors } from "./sdk-error.js";

type Operation<T extends ApplyPatchOperation["type"]> = Extract<ApplyPatchOperation, { type: T }>;

/** Turns a path of the model into one of the sandbox, or throws. */
export type ResolveForWrite = (path: string) => string;

/** Applies the diffs of the tool `apply_patch` to the files of a sandbox. */
export class SandboxEditor implements Editor {
  readonly #sandbox: Sandbox;
  readonly #resolve: ResolveForWrite;

  constructor(sandbox: Sandbox, resolve: ResolveForWrite) {
    this.#sandbox = sandbox;
    this.#resolve = resolve;
  }

  /** Whether a diff may change that file. The SDK asks before it offers one. */
  canAccessPathForEdit(path: string): boolean {
    try {
      this.#resolve(path);
      return true;
    } catch {
      return false;
    }
  }

  async createFile({ path, diff }: Operation<"create_file">): Promise<ApplyPatchResult> {
    return await withSdkErrors(async () => {
      const inside = this.#resolve(path);
      if ((await this.#sandbox.stat(inside)) !== null) {
        throw new agents.UserError(`File already exists: ${path}`);
      }
      await this.#sandbox.writeFile(inside, agents.applyDiff("", diff, "create"));
      return {};
    });
  }

  async updateFile({ path, diff, moveTo }: Operation<"update_file">): Promise<ApplyPatchResult> {
    return await withSdkErrors(async () => {
      const from = this.#resolve(path);
      const to = moveTo ? this.#resolve(moveTo) : from;
      const changed = agents.applyDiff(await this.#readText(path, from), diff);
      // Moved first: the file that arrives keeps its permissions.
      if (to !== from) await this.#sandbox.rename(from, to);
      await this.#sandbox.writeFile(to, changed);
      return {};
    });
  }

  async deleteFile({ path }: Operation<"delete_file">): Promise<ApplyPatchResult> {
    return await withSdkErrors(async () => {
      if (!(await this.#sandbox.deleteFile(this.#resolve(path)))) throw missing(path);
      return {};
    });
  }

  async #readText(path: string, inside: string): Promise<string> {
    const bytes = await this.#sandbox.readBytes(inside);
    if (bytes === null) throw missing(path);
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
    } catch (cause) {
      throw new sandboxes.SandboxApplyPatchDecodeError(`File is not UTF-8 text: ${path}`, { cause });
    }
  }
}

function missing(path: string): Error {
  return new sandboxes.SandboxApplyPatchFileNotFoundError(`File not found: ${path}`);
}
