import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { BLUEPRINT_SCHEMA, findBlueprint } from "../harness.js";
import { SandboxError } from "../sandbox/errors.js";
import { makeDirectories } from "../util/make-directories.js";
import type { Invocation } from "./invocation.js";
import { starterBlueprint } from "./starter-blueprint.js";
import { UsageError } from "./usage-error.js";

const DIRECTORY = ".glovebox";

/** `glovebox init`: a first blueprint, the schema that editors use, and an ignore rule for runs. */
export async function run({ operands, flags, screen }: Invocation): Promise<number> {
  const [name = "first"] = operands;
  if (!/^[A-Za-z][A-Za-z0-9_-]{0,63}$/.test(name)) {
    throw new UsageError(`"${name}" is no name of a blueprint`, "letters, digits, - and _; it begins with a letter");
  }
  const file = join(DIRECTORY, "blueprints", `${name}.yaml`);
  if (existsSync(file) && !flags.has("force")) {
    throw new SandboxError("conflict", `${file} is there already`, {
      hint: "take another name, or say --force",
      retryable: false,
    });
  }
  const text = flags.has("from") ? copyOf(flags.text("from") ?? "", name) : starterBlueprint(name);
  makeDirectories(join(DIRECTORY, "blueprints"));
  writeFileSync(file, `# yaml-language-server: $schema=../blueprint.schema.json\n${text}`);
  writeFileSync(join(DIRECTORY, "blueprint.schema.json"), `${JSON.stringify(BLUEPRINT_SCHEMA, undefined, 2)}\n`);
  const ignore = join(DIRECTORY, ".gitignore");
  if (!existsSync(ignore)) writeFileSync(ignore, "runs/\n");
  if (flags.has("json")) await screen.printJson({ file });
  else {
    await screen.print(`${file}\n`);
    await screen.remark(`try it: glovebox run ${name} --repo . --intent "say what is to be done"`);
  }
  return 0;
}

function copyOf(source: string, name: string): string {
  const { path } = findBlueprint(source);
  if (![".yaml", ".yml"].includes(extname(path))) {
    throw new SandboxError("unsupported", `${path} is not YAML, so it is not copied`, {
      hint: "copy the file yourself",
    });
  }
  return readFileSync(path, "utf8")
    .replace(/^# yaml-language-server.*\n/, "")
    .replace(/^name: .*$/m, `name: ${name}`);
}
