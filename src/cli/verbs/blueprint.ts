import { relative } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import { BLUEPRINT_SCHEMA, type BlueprintFault, loadBlueprint, needsOf, showFault, trustNote } from "../../harness.js";
import { toInertLine } from "../../util/inert-text.js";
import { UsageError } from "../commands.js";
import type { Invocation } from "../invocation.js";

const INVALID = 2;

/** `glovebox blueprint validate|schema`. */
export async function run(invocation: Invocation): Promise<number> {
  const [what, ...names] = invocation.operands;
  if (what === "schema") {
    if (names.length > 0)
      throw new UsageError("blueprint schema takes no name", "to check one: glovebox blueprint validate <name>");
    await invocation.screen.print(`${JSON.stringify(BLUEPRINT_SCHEMA, undefined, 2)}\n`);
    return 0;
  }
  if (what !== "validate") {
    throw new UsageError(
      `"${what}" is neither validate nor schema`,
      "glovebox blueprint validate <name|file>, or glovebox blueprint schema",
    );
  }
  if (names.length === 0)
    throw new UsageError("blueprint validate needs a name or a file", "glovebox blueprints lists the names");
  return await validate(names, invocation);
}

async function validate(names: readonly string[], { flags, screen }: Invocation): Promise<number> {
  const results = [];
  for (const name of names) {
    const faults = await faultsOf(
      name,
      { repoDir: flags.text("repo"), trust: flags.has("trust"), inspect: true },
      (note) => screen.printNote(note),
    );
    results.push({ blueprint: name, isValid: faults.length === 0, faults });
    if (flags.has("json")) continue;
    if (faults.length === 0) await screen.print(`${toInertLine(name)}: ${screen.style.good("valid")}\n`);
    for (const fault of faults) await screen.write(screen.stderr, `${toInertLine(showFault(fault))}\n`);
  }
  if (flags.has("json")) await screen.printJson(results);
  return results.every(({ isValid }) => isValid) ? 0 : INVALID;
}

async function faultsOf(
  name: string,
  options: Parameters<typeof loadBlueprint>[1],
  report: (note: string) => Promise<void>,
): Promise<readonly BlueprintFault[]> {
  try {
    const blueprint = await loadBlueprint(name, options);
    const note = trustNote(blueprint);
    if (note !== undefined) await report(note);
    needsOf(blueprint);
    return [];
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    if (Array.isArray(error.partial)) return (error.partial as BlueprintFault[]).map(shorten);
    if (error.code !== "invalid_argument" && error.code !== "unsupported") throw error;
    return [{ file: name, path: "", message: [error.message, error.hint].filter(Boolean).join("; ") }];
  }
}

/** Shows paths below the current directory relative to it. */
function shorten(fault: BlueprintFault): BlueprintFault {
  if (fault.file === undefined) return fault;
  const short = relative(process.cwd(), fault.file);
  return short.startsWith("..") ? fault : { ...fault, file: short };
}
