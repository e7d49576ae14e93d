import type { Mutant } from "./mutant.js";

/** Mutants that lose an option about paths. */
export const pathMutants: readonly Mutant[] = [
  {
    name: "forgets the place that it is given",
    caught: "workdir.invalid",
    because: /^workDir "app": expected invalid_argument/,
    options: ({ workDir: _, ...opts }) => opts,
  },
];
