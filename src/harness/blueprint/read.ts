import type { Blueprint, BlueprintSpec } from "../types.js";
import type { BlueprintFault } from "./blueprint-error.js";
import { showPlace } from "./blueprint-error.js";
import { checkBlueprint } from "./define.js";
import { parseDocument } from "./document.js";

/** Larger documents are not blueprints. */
export const MAX_DOCUMENT_BYTES: number = 1024 * 1024;

/** Reads a blueprint from YAML or JSON; every fault has its line. */
export async function readBlueprint(
  text: string,
  file: string,
): Promise<{ blueprint?: Blueprint; faults: readonly BlueprintFault[] }> {
  if (Buffer.byteLength(text) > MAX_DOCUMENT_BYTES) {
    return { faults: [{ file, path: "", message: `is larger than ${MAX_DOCUMENT_BYTES} bytes` }] };
  }
  const document = await parseDocument(text);
  if (document.errors.length > 0) return { faults: document.errors.map((error) => ({ file, path: "", ...error })) };
  const { blueprint, faults } = checkBlueprint(document.value as BlueprintSpec, document.value);
  if (blueprint !== undefined) return { blueprint, faults: [] };
  return {
    faults: faults.map(({ place, message, isKey }) => ({
      file,
      ...document.locate(place, isKey),
      path: showPlace(place),
      message,
    })),
  };
}
