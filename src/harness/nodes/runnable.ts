import type { Fields } from "../../util/schema.js";
import * as is from "../../util/schema.js";
import type { NodeFunction, Text } from "../node-types.js";
import { type FieldPath, fields, type ReportFault, type Written } from "../schema.js";
import { type NodeText, textAt, textsIn } from "./node-text.js";

/** What is run: a program with its arguments, a script by request, or, in code, a function. */
export interface RunnableSpec {
  run?: readonly Text[];
  shell?: string;
  exec?: NodeFunction;
}

/** The fields of what is run. */
export const RUNNABLE: Fields<Written<RunnableSpec>> = {
  run: fields.argv,
  shell: is.noted(fields.text, { description: "A script for /bin/sh. It takes no templates: put values into env." }),
};

/** Checks that there is exactly one of program, script and function. */
export function checkRunnable({ run, shell, exec }: RunnableSpec, place: FieldPath, report: ReportFault): void {
  const given = [run, shell, exec].filter((way) => way !== undefined).length;
  if (given === 1) return;
  report({ place, message: given === 0 ? "has neither run nor shell" : "has both run and shell; give one of them" });
}

/** The templates and the script of what is run. */
export function textsOfRunnable(place: FieldPath, { run, shell }: RunnableSpec): NodeText[] {
  return [...textsIn([...place, "run"], run), ...textAt([...place, "shell"], shell, "script")];
}
