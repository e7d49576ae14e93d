import type { CliCommand } from "./command.js";
import { type Flag, HELP_FLAG, JSON_FLAG } from "./flags.js";

const all: readonly Flag[] = [JSON_FLAG, HELP_FLAG];
const REPO_FLAG: Flag = {
  name: "repo",
  value: "path",
  offers: "directories",
  help: "look in the .glovebox/blueprints of this repository (default: here)",
};

/** The verbs about blueprints themselves. */
export const BLUEPRINT_COMMANDS: readonly CliCommand[] = [
  {
    name: "blueprints",
    summary: "list the blueprints that a run can be given by name",
    operands: "",
    argv: "none",
    operandCount: [0, 0],
    flags: [REPO_FLAG, { name: "quiet", short: "q", help: "only the names" }, ...all],
    notes: [
      "An earlier place hides a later one: the repository, your folder, what is built in. A path works too.",
      "Nothing from a repository hides what is built in.",
    ],
    examples: [["glovebox blueprints", "with where each comes from"]],
  },
  {
    name: "blueprint",
    summary: "check blueprints, or print the schema that they are held to",
    operands: "validate <name|file>… | schema",
    argv: "none",
    operandCount: [1, Number.POSITIVE_INFINITY],
    offers: [["validate", "schema"], "files"],
    flags: [
      REPO_FLAG,
      { name: "trust", help: "also run blueprints of a repository that are code; remembered for their content" },
      ...all,
    ],
    notes: ["validate tells every fault with file, line and path, and exits with 2 when there is one."],
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
      { name: "from", value: "blueprint", help: "copy this one in place of the starter, for example bug-fix" },
      { name: "force", help: "write over a blueprint of that name" },
      ...all,
    ],
    notes: ["Writes .glovebox/blueprints/<name>.yaml, the schema for your editor, and an ignore rule for runs."],
    examples: [
      ["glovebox init", "a small one that runs without an agent"],
      ["glovebox init fix-it --from bug-fix", "a built-in one to change"],
    ],
  },
];
