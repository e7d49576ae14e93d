import { fileURLToPath } from "node:url";
import { type Child, startChild } from "../run/compiled.js";

/** The package as it is built: programs in processes of their own find what it depends on beside it. */
const BUILT = fileURLToPath(new URL("../../../dist", import.meta.url));

/** Starts a program of `tests/children` that has something in the cluster; in `home`, if not in the home of this process. */
export function startClient(program: string, options: object, home?: string): Child {
  return startChild(BUILT, program, [JSON.stringify(options)], home === undefined ? {} : { GLOVEBOX_HOME: home });
}

/** The same, and kills it once it has what it wants; gives what it said of that. */
export async function killClient(program: string, options: object, home?: string): Promise<string> {
  const child = startClient(program, options, home);
  const line = await child.line();
  child.kill();
  await child.ended;
  return line;
}
