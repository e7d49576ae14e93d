import type { CliCommand } from "./command.js";
import { type Flag, HELP_FLAG, JSON_FLAG } from "./flags.js";

const all: readonly Flag[] = [JSON_FLAG, HELP_FLAG];
const REPO_FLAG: Flag = {
  name: "repo",
  value: "path",
  offers: "directories",
  help: "look in .glovebox/blueprints of this repository (default: here)",
};

/** The verbs about blueprints themselves. */
export const BLUEPRINT_COMMANDS: readonly CliCommand[] = [
  {
    name: "blueprints",
    summary: "list the blueprints you can run by name",
    operands: "",
    argv: "none",
    operandCount: [0, 0],
    flags: [REPO_FLAG, { name: "quiet", short: "q", help: "print only the names" }, ...all],
    notes: [
      "If several have the same name, the repository's wins, then the one in your own folder, then the built-in one.",
      "Exception: a repository's blueprint never hides a built-in one. You can also run a blueprint by its path.",
    ],
    examples: [["glovebox blueprints", "with the place each one comes from"]],
  },
  {
    name: "blueprint",
    summary: "check blueprints, or print their JSON schema",
    operands: "validate <name|file>… | schema",
    argv: "none",
    operandCount: [1, Number.POSITIVE_INFINITY],
    offers: [["validate", "schema"], "files"],
    flags: [
      REPO_FLAG,
      { name: "trust", help: "also run blueprints of a repository that are code; remembered until they change" },
      ...all,
    ],
    notes: ["validate prints every error with file, line and path, and exits with 2 if there is one."],
    examples: [
      ["glovebox blueprint validate .glovebox/blueprints/first.yaml", "before the first run, or in CI"],
      ["glovebox blueprint schema > blueprint.schema.json", "for an editor"],
    ],
  },
  {
    name: "init",
    summary: "write a first blueprint into this repository",
    operands: "[name]",
    argv: "none",
    operandCount: [0, 1],
    flags: [
      { name: "from", value: "blueprint", help: "copy this blueprint instead of the starter, for example bug-fix" },
      { name: "force", help: "overwrite a blueprint of that name" },
      ...all,
    ],
    notes: ["Writes .glovebox/blueprints/<name>.yaml, the schema for your editor, and a .gitignore for runs."],
    examples: [
      ["glovebox init", "a small one that runs without an agent"],
      ["glovebox init fix-it --from bug-fix", "a copy of a built-in one, for you to change"],
    ],
  },
];
