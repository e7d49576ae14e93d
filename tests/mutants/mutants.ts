import { endingMutants } from "./ending-mutants.js";
import { fileCallMutants } from "./file-call-mutants.js";
import { fileMutants } from "./file-mutants.js";
import { lifetimeMutants } from "./lifetime-mutants.js";
import type { Mutant } from "./mutant.js";
import { outputMutants } from "./output-mutants.js";
import { pathMutants } from "./path-mutants.js";
import { portMutants } from "./port-mutants.js";
import { portableMutants } from "./portable-mutants.js";
import { processMutants } from "./process-mutants.js";
import { startMutants } from "./start-mutants.js";

/** Every backend that is broken on purpose. */
export const mutants: readonly Mutant[] = [
  ...startMutants,
  ...outputMutants,
  ...endingMutants,
  ...fileMutants,
  ...portMutants,
  ...fileCallMutants,
  ...portableMutants,
  ...pathMutants,
  ...lifetimeMutants,
  ...processMutants,
];
