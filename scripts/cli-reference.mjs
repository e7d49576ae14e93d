import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startBundle } from "./bundle.mjs";

/**
 * Writes docs/cli.md, the reference of the command line, from the table that `glovebox help` prints.
 * `cli-reference.mjs [--check]`: with `--check` it writes nothing and fails if the page is out of date.
 */
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const file = join(root, "docs", "cli.md");

/** Verbs that are not listed here are in the last group. */
const GROUPS = [
  ["Sandboxes", ["exec", "shell", "ls", "rm", "reap"]],
  ["Files of a kept sandbox", ["snapshot", "snapshots", "restore", "fork", "diff", "export", "import", "push"]],
  ["Runs", ["run", "resume", "runs", "show", "logs", "apply", "stop", "gc"]],
  ["Blueprints", ["blueprints", "blueprint", "init"]],
  ["Tasks", ["task"]],
  ["This machine, and help", ["doctor", "config", "prepare", "completion", "version", "help"]],
];

/** What every verb has in common; `src/cli/report-error.ts` and `src/cli/terminal/interruption.ts` decide it. */
const EXIT_CODES = [
  ["0", "Success."],
  ["1", "Something failed. Stderr has a line `glovebox: …`, and a hint where a fix is known."],
  ["2", "The command line is wrong. Nothing was done."],
  ["129, 130, 143", "Glovebox got SIGHUP, SIGINT or SIGTERM."],
  ["141", "Nobody reads the output anymore."],
];

const INTRODUCTION = `\`glovebox help <verb>\` and \`glovebox <verb> --help\` print the same as this page.

- Flags follow the verb. \`--flag value\` and \`--flag=value\` mean the same.
- Everything after \`--\` goes to the command unchanged.
- Times need a unit: \`500ms\`, \`30s\`, \`2m\`, \`1h\` or \`1d\`.
- Sizes are bytes, or have a unit that is a power of 1024: \`64k\`, \`512m\`, \`1.5g\`.`;

const page = format(reference(await readCommands()));
if (process.argv.includes("--check")) {
  const isCurrent = readFileSync(file, "utf8") === page;
  if (!isCurrent) console.error("docs/cli.md is out of date: run npm run docs");
  process.exitCode = isCurrent ? 0 : 1;
} else {
  writeFileSync(file, page);
}

/** Loads the table from its source, so that no build is needed. */
async function readCommands() {
  const build = await startBundle("src", ["cli/commands"], { external: /^node:|^yaml$/ });
  const { output } = await build.generate({ codeSplitting: false });
  const { COMMANDS } = await import(`data:text/javascript,${encodeURIComponent(output[0].code)}`);
  return COMMANDS;
}

function format(text) {
  const biome = join(root, "node_modules", ".bin", "biome");
  return execFileSync(biome, ["format", "--stdin-file-path=docs/cli.md"], { cwd: root, input: text, encoding: "utf8" });
}

function reference(commands) {
  const listed = new Set(GROUPS.flatMap(([, verbs]) => verbs));
  const groups = GROUPS.map(([title, verbs], index) => {
    const isLast = index === GROUPS.length - 1;
    const inGroup = ({ name }) => verbs.includes(name) || (isLast && !listed.has(name));
    return { title, commands: commands.filter(inGroup) };
  }).filter((group) => group.commands.length > 0);
  return `${[
    "<!-- Written by npm run docs from the table that `glovebox help` prints. -->",
    "# Command line",
    "```\nglovebox <verb> [flags] [-- command [argument…]]\n```",
    INTRODUCTION,
    ...groups.map(contents),
    "## Exit codes",
    "Every verb uses these, unless its own section says otherwise.",
    table(["Code", "Meaning"], EXIT_CODES),
    ...groups.flatMap((group) => [`## ${group.title}`, ...group.commands.map(section)]),
  ].join("\n\n")}\n`;
}

function contents({ title, commands }) {
  return `**${title}**\n\n${table(
    ["Verb", "What it does"],
    commands.map(({ name, summary }) => [`[\`${name}\`](#glovebox-${name})`, sentence(summary)]),
  )}`;
}

function section({ name, summary, operands, flags, notes = [], examples }) {
  const synopsis = ["glovebox", name, "[flags]", operands].filter(Boolean).join(" ");
  const shown = flags.filter((flag) => flag.name !== "help");
  const hasDefaults = shown.some((flag) => defaultOf(flag) !== "");
  const rows = shown.map((flag) => [
    `\`${labelOf(flag)}\``,
    sentence(textOf(flag.help), flag.offers),
    ...(hasDefaults ? [defaultOf(flag)] : []),
  ]);
  return [
    `### glovebox ${name}`,
    sentence(summary),
    `\`\`\`\n${synopsis}\n\`\`\``,
    ...(rows.length > 0 ? [table(["Flag", "What it does", ...(hasDefaults ? ["Default"] : [])], rows)] : []),
    ...(notes.length > 0 ? [paragraphs(notes).map(point).join("\n")] : []),
    `\`\`\`sh\n${examples.map(([line, meaning]) => `# ${meaning}\n${line}`).join("\n\n")}\n\`\`\``,
  ].join("\n\n");
}

/** The lines of a verb's notes, joined where a sentence or an indented text goes on in the next one. */
function paragraphs(lines) {
  return lines
    .join("\n")
    .replaceAll(/\n +/g, " ")
    .replaceAll(/^(\w+) {2,}/gm, "`$1`: ")
    .replaceAll(/(?<!\.)\n/g, " ")
    .split("\n");
}

function point(text) {
  const [, title, list] = /^([^.·]+): ([^·]+ · .+)\.$/.exec(text) ?? [];
  if (list === undefined) return `- ${marked(text)}`;
  const codes = list.split(" · ").map((each) => each.replace(/^[\d, ]*\d(?= )/, "$&:"));
  return [`- ${title}:`, ...codes.map((each) => `  - ${marked(each)}`)].join("\n");
}

/** The value that the help names as the default, in any of the ways in which it does. */
function defaultOf({ help, offers }) {
  const [, written] = /\(default: ([^)]+)\)/.exec(help) ?? [];
  const [, word] = /([\w-]+)(?: \(default\)|, the default)/.exec(help) ?? [];
  const [, limit] = /, (\S+) unless set/.exec(help) ?? [];
  const found = written ?? word ?? limit;
  return found === undefined ? "" : found === "." ? "`.`" : marked(found, offers);
}

function textOf(help) {
  return help.replace(/ \(default(?:: [^)]+)?\)|, the default|, \S+ unless set/, "");
}

/** As a sentence of Markdown: with a capital letter and a full stop. */
function sentence(text, offers) {
  const words = marked(text, offers);
  return `${words[0].toUpperCase()}${words.slice(1)}${/[.…]$/.test(words) ? "" : "."}`;
}

/** Text of the help as Markdown: flags, variables, paths, placeholders and the words that a flag offers are code. */
function marked(text, offers = []) {
  const words = Array.isArray(offers) ? offers.filter((word) => /^\w+$/.test(word)) : [];
  const code = [
    /`[^`]+`/,
    /glovebox [a-z]+ <[^>]+>/,
    /(?<!\S)--(?=[\s.])/,
    /(?<![\w-])--?[a-z][\w-]*(?:=\w+)?(?![\w-])/,
    /\b[A-Z]+_[A-Z_]+\b|\$[A-Z]+\b|\\r/,
    /<[^>]+>/,
    /(?<![\w/.])\.?[\w-]*\/(?:[\w.<>-]+\/)*[\w.<>-]*[\w>]/,
    /(?<!\S)\.[a-z][\w.]+\w/,
    /\ballow=\S+/,
    ...words.map((word) => new RegExp(`(?<![\\w-])${word}(?![\\w-])`)),
  ];
  return text
    .replaceAll(new RegExp(code.map(({ source }) => source).join("|"), "g"), (found) => {
      const [, document] = /^docs\/([\w-]+\.md)$/.exec(found) ?? [];
      if (document !== undefined) return `[${found}](${document})`;
      return found.startsWith("`") ? found : `\`${found}\``;
    })
    .replaceAll("|", "\\|");
}

function labelOf({ name, short, value, isOptional }) {
  const shown = isOptional === "inline" ? `[=${value}]` : isOptional === true ? ` [${value}]` : ` <${value}>`;
  const long = value === undefined ? `--${name}` : `--${name}${shown}`;
  return (short === undefined ? long : `-${short}, ${long}`).replaceAll("|", "\\|");
}

function table(head, rows) {
  const all = [head, ...rows];
  const widths = head.map((_, column) => Math.max(...all.map((row) => row[column].length)));
  const line = (row) => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(" | ")} |`;
  return [line(head), `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`, ...rows.map(line)].join("\n");
}
