import { SandboxError } from "../../../contracts/errors.js";
import type { Fault, FieldPath } from "../schema.js";

/** Something that is wrong with a blueprint, and where. */
export interface BlueprintFault {
  /** As in `nodes[2].prompt`. */
  readonly path: string;
  readonly message: string;
  readonly file?: string;
  /** From 1. */
  readonly line?: number;
  readonly column?: number;
}

const MOST_SHOWN = 20;

/** A place as it is written in code. */
export function showPlace(place: FieldPath): string {
  return place.reduce<string>((path, step) => {
    if (typeof step === "number") return `${path}[${step}]`;
    return path === "" ? step : `${path}.${step}`;
  }, "");
}

/** A fault on one line: file, line and column where they are known, path, message. */
export function showFault({ file, line, column, path, message }: BlueprintFault): string {
  const where = [file, line, column].filter((part) => part !== undefined).join(":");
  return [where, path, message].filter((part) => part !== "").join(": ");
}

/** The error of a blueprint that cannot be used; `partial` has the faults. */
export function blueprintError(faults: readonly BlueprintFault[]): SandboxError {
  const shown = faults.slice(0, MOST_SHOWN).map(showFault);
  if (faults.length > MOST_SHOWN) shown.push(`and ${faults.length - MOST_SHOWN} more`);
  return new SandboxError("invalid_argument", shown.join("\n"), {
    operation: "blueprint",
    hint: "glovebox blueprint schema prints what may be in a blueprint",
    partial: faults,
  });
}

/** A fault as users see it. */
export function toBlueprintFault({ place, message }: Fault): BlueprintFault {
  return { path: showPlace(place), message };
}
