import { endingMutants } from "./ending-mutants.js";
import { fileMutants } from "./file-mutants.js";
import type { Mutant } from "./mutant.js";
import { outputMutants } from "./output-mutants.js";
import { portableMutants } from "./portable-mutants.js";
import { startMutants } from "./start-mutants.js";

/** Every backend that is broken on purpose. */
export const mutants: readonly Mutant[] = [
  ...startMutants,
  ...outputMutants,
  ...endingMutants,
  ...fileMutants,
  ...portableMutants,
];
