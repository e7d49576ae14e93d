import { randomBytes } from "node:crypto";
import { lstatSync, renameSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import { BLUEPRINT_SCHEMA, findBlueprint, listBlueprints, readFound } from "../../harness.js";
import { type OpenDirectory, openBeneath } from "../../util/beneath.js";
import { UsageError } from "../commands.js";
import type { Invocation } from "../invocation.js";
import { starterBlueprint } from "../starter-blueprint.js";

const DIRECTORY = ".glovebox";

/** `glovebox init`: writes a first blueprint, its schema for editors, and a .gitignore for runs. */
export async function run({ operands, flags, screen }: Invocation): Promise<number> {
  const [name = "first"] = operands;
  if (!/^[A-Za-z][A-Za-z0-9_-]{0,63}$/.test(name)) {
    throw new UsageError(
      `"${name}" is not a valid name for a blueprint`,
      "use letters, digits, - and _; start with a letter",
    );
  }
  const file = join(DIRECTORY, "blueprints", `${name}.yaml`);
  if (listBlueprints().some((known) => known.name === name && known.origin === "built-in")) {
    throw new SandboxError("conflict", `${name} is the name of a built-in blueprint, which a repository can't hide`, {
      hint: "choose another name",
      retryable: false,
    });
  }
  const text = flags.has("from") ? copyOf(flags.text("from") ?? "", name) : starterBlueprint(name);
  using top = openBeneath(process.cwd(), [DIRECTORY], { make: 0o777 });
  using folder = openBeneath(process.cwd(), [DIRECTORY, "blueprints"], { make: 0o777 });
  if (isThere(folder, `${name}.yaml`) && !flags.has("force")) {
    throw new SandboxError("conflict", `${file} exists already`, {
      hint: "choose another name, or pass --force",
      retryable: false,
    });
  }
  replace(folder, `${name}.yaml`, `# yaml-language-server: $schema=../blueprint.schema.json\n${text}`);
  replace(top, "blueprint.schema.json", `${JSON.stringify(BLUEPRINT_SCHEMA, undefined, 2)}\n`);
  if (!isThere(top, ".gitignore")) replace(top, ".gitignore", "runs/\n");
  if (flags.has("json")) await screen.printJson({ file });
  else {
    await screen.print(`${file}\n`);
    const trust = flags.has("from") ? " --trust" : "";
    await screen.printNote(`try it: glovebox run ${name} --repo . --intent "what you want done"${trust}`);
  }
  return 0;
}

/** A link counts too, wherever it leads. */
function isThere(directory: OpenDirectory, name: string): boolean {
  return lstatSync(directory.at(name), { throwIfNoEntry: false }) !== undefined;
}

/** Writes a file atomically; a link of that name is replaced, not followed. */
function replace(directory: OpenDirectory, name: string, text: string): void {
  const draft = directory.at(`.${name}.${randomBytes(6).toString("hex")}.tmp`);
  writeFileSync(draft, text, { flag: "wx" });
  renameSync(draft, directory.at(name));
}

function copyOf(source: string, name: string): string {
  const found = findBlueprint(source);
  const { path } = found;
  if (![".yaml", ".yml"].includes(extname(path))) {
    throw new SandboxError("unsupported", `${path} is not YAML, and init only copies YAML`, {
      hint: "copy the file yourself",
    });
  }
  return Buffer.from(readFound(found))
    .toString("utf8")
    .replace(/^# yaml-language-server.*\n/, "")
    .replace(/^name: .*$/m, `name: ${name}`);
}
