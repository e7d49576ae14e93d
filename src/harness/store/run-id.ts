import { randomBytes } from "node:crypto";
import { SandboxError } from "../../../contracts/errors.js";

const LONGEST_SLUG = 40;

/** A new name for a run: eight hexadecimal digits. */
export function newRunId(): string {
  return randomBytes(4).toString("hex");
}

/** Refuses a run id that could not be a part of paths and branch names, or that looks like the id of a sandbox. */
export function assertRunId(id: string): void {
  const isSandboxId = /^[0-9a-f]{16}$/.test(id);
  if (typeof id === "string" && /^[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?$/.test(id) && !isSandboxId) return;
  throw new SandboxError("invalid_argument", `Invalid run id ${JSON.stringify(String(id).slice(0, 80))}`, {
    hint: "1 to 64 small letters, digits and inner dashes; 16 hexadecimal digits are the id of a sandbox",
  });
}

/** A name as a part of a branch: small letters, digits and single dashes. */
export function toSlug(name: string): string {
  const slug = name
    .normalize("NFKD")
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, "-")
    .replace(/^-+/, "")
    .slice(0, LONGEST_SLUG)
    .replace(/-+$/, "");
  return slug === "" ? "run" : slug;
}

/** The branch that a run works on, unless another one is asked for. */
export function branchOfRun(runId: string, blueprint: string): string {
  return `harness/${runId}/${toSlug(blueprint)}`;
}
