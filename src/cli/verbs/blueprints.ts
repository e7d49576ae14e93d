import { type FoundBlueprint, isDocument, listBlueprints, readBlueprint, readFound } from "../../harness.js";
import { toInertLine } from "../../util/inert-text.js";
import type { Invocation } from "../invocation.js";
import { toFailure } from "../report-error.js";
import { formatTable } from "../terminal.js";

/** `glovebox blueprints`: lists them with their origin, and marks hidden ones. */
export async function run({ flags, screen }: Invocation): Promise<number> {
  const found = listBlueprints({ repoDir: flags.text("repo") });
  const names = new Set<string>();
  const rows = [];
  for (const blueprint of found) {
    const isHidden = names.has(blueprint.name);
    names.add(blueprint.name);
    rows.push({ ...blueprint, ...(await describe(blueprint)), isHidden });
  }
  if (flags.has("json")) await screen.printJson(rows);
  else if (flags.has("quiet")) await screen.print([...names].map((name) => `${toInertLine(name)}\n`).join(""));
  else {
    const head = ["NAME", "FROM", "DESCRIPTION"].map(screen.style.bold);
    const lines = rows.map(({ name, origin, description, isHidden }) =>
      [name, isHidden ? `${origin} (hidden)` : origin, description].map(toInertLine),
    );
    await screen.print(formatTable([head, ...lines]));
  }
  return 0;
}

/** The description in a document. A list never runs code. */
async function describe(found: FoundBlueprint): Promise<{ description: string; isValid?: boolean }> {
  if (!isDocument(found.path)) return { description: "(code)" };
  let text: string;
  try {
    text = Buffer.from(readFound(found)).toString("utf8");
  } catch (error) {
    return { description: `(cannot be read: ${toFailure(error).code})`, isValid: false };
  }
  const { blueprint } = await readBlueprint(text, found.path);
  if (blueprint === undefined) return { description: "(has errors: glovebox blueprint validate)", isValid: false };
  return { description: blueprint.description ?? "", isValid: true };
}
