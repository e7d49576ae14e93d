import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../../..", import.meta.url));

/** One command of a document: how it starts, its exit code, and what it prints. */
export type Step = readonly [start: string, code: number, prints: RegExp];

/** What a document has its reader type, in its order. */
export interface Walk {
  readonly commands: readonly string[];
  /** Where everything works. */
  readonly works: readonly Step[];
  /** In a container that may not make namespaces. */
  readonly refused: readonly Step[];
}

/** The reason, and the command that starts a container where it works. */
const LINE = /could not be confined.*^ *hint:? +start the container with: docker run --security-opt /ims;
const DOCTOR =
  /fix: start the container with: docker run --security-opt .*The default backend, local, does not work\.\n/s;

/** The tutorial: each block is one command. */
export const TUTORIAL: Walk = {
  commands: blocksOf("docs/tutorial.md", "sh"),
  works: [
    ["sudo apt-get", 0, /^\/\S*bwrap\n\/\S*git\n$/],
    ["npm install --global", 0, /^$/],
    ["glovebox doctor local", 0, /The default backend, local, works\.\n$/],
    ["glovebox exec -- echo", 0, /^hello\n$/],
    ["glovebox exec -- cat", 1, /^cat: \/etc\/shadow: No such file or directory\n$/],
    ["glovebox exec -- git", 128, /Could not resolve host: github\.com\n/],
    ["mkdir cart", 0, /^$/],
    ["glovebox exec --repo", 1, /5 == 10/],
    ["glovebox run test-and-report", 1, /\nFAILED in .*report\.html\n/s],
    ["glovebox show look", 0, /run look · failed/],
    ["export ANTHROPIC_API_KEY", 0, /\nSUCCESS in .* 1 file \+1 −1\n/s],
    [
      "glovebox diff",
      0,
      /^-.*item\.price, 0.*^\+.*item\.price \* item\.count, 0.*^fix\/cart\n.*\n[0-9a-f]+ \[harness\] Two of/ms,
    ],
    ["git remote add", 0, /^$/],
    ["export GITHUB_TOKEN", 0, /\/pull\/1\n/],
    ["glovebox run bug-fix", 0, /\/pull\/2\n/],
    ["glovebox rm", 0, /^[0-9a-f]{16}\n/],
  ],
  refused: [
    ["sudo apt-get", 0, /^\/\S*bwrap\n\/\S*git\n$/],
    ["npm install --global", 0, /^$/],
    ["glovebox doctor local", 1, DOCTOR],
    ["glovebox exec -- echo", 1, LINE],
    ["glovebox exec -- cat", 1, LINE],
    ["glovebox exec -- git", 1, LINE],
    ["mkdir cart", 0, /^$/],
    ["glovebox exec --repo", 1, LINE],
    ["glovebox run test-and-report", 3, LINE],
    ["glovebox show look", 0, LINE],
    ["export ANTHROPIC_API_KEY", 3, LINE],
    ["glovebox diff", 128, /^glovebox: Run "fix-cart" changed nothing\nhint: glovebox show fix-cart\n/],
    ["git remote add", 0, /^$/],
    ["export GITHUB_TOKEN", 0, /^glovebox: run fix-cart changed nothing, so there is nothing to push\n$/],
    ["glovebox run bug-fix", 3, LINE],
    ["glovebox rm", 0, /^glovebox: there are no kept sandboxes\nremoved look\n$/],
  ],
};

/** The program of the readme. */
export const FIRST_PROGRAM: string = blocksOf("README.md", "ts")[0] ?? "";

/** The readme: each line is one command, and so is its program. */
export const README: Walk = {
  commands: [
    ...blocksOf("README.md", "sh").flatMap(linesOf).slice(0, 3),
    ...blocksOf("README.md", "console").flatMap((block) =>
      [...block.matchAll(/^\$ (.+)$/gm)].map(([, line = ""]) => line),
    ),
    ...blocksOf("README.md", "sh").flatMap(linesOf).slice(3),
    `cat > first.mjs <<'END'\n${FIRST_PROGRAM}END\nnode first.mjs`,
  ],
  works: [
    ["sudo apt-get", 0, /^\/\S*bwrap\n\/\S*git\n$/],
    ["npm install", 0, /^$/],
    ["npx glovebox doctor", 0, /^The default backend, local, works\.\n/m],
    ["npx glovebox exec -- echo", 0, /^hello\n$/],
    ["npx glovebox exec -- cat", 1, /^cat: \/etc\/shadow: No such file or directory\n$/],
    ["npx glovebox exec --repo", 0, /nothing to commit, working tree clean\n$/],
    ["npx glovebox exec --here", 0, /^file\nnode_modules\n$/],
    ["npx glovebox run hello", 0, /\nSUCCESS in /],
    ["cat > first.mjs", 0, /^0 hello from \/\S+\n1 cat: \/etc\/shadow: No such file or directory\n$/],
  ],
  refused: [
    ["sudo apt-get", 0, /^\/\S*bwrap\n\/\S*git\n$/],
    ["npm install", 0, /^$/],
    [
      "npx glovebox doctor",
      1,
      /start the container with: docker run --security-opt .*^The default backend, local, does not work\.\n/ms,
    ],
    ["npx glovebox exec -- echo", 1, LINE],
    ["npx glovebox exec -- cat", 1, LINE],
    ["npx glovebox exec --repo", 1, LINE],
    ["npx glovebox exec --here", 1, LINE],
    ["npx glovebox run hello", 3, LINE],
    ["cat > first.mjs", 1, /code: 'no_isolation'.*hint: 'start the container with: docker run --security-opt /s],
  ],
};

function blocksOf(document: string, language: string): string[] {
  const page = readFileSync(join(root, document), "utf8");
  return [...page.matchAll(new RegExp(`^\`\`\`${language}\\n([\\s\\S]*?)^\`\`\`$`, "gm"))].map(
    ([, block = ""]) => block,
  );
}

function linesOf(block: string): string[] {
  return block.split("\n").filter((line) => line !== "");
}
