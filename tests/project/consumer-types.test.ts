import { execFile } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { installPackage, whyNoPackage } from "../support/run/installed-package.js";
import { SET_UP_LIMIT } from "../support/run/set-up-limit.js";
import { FIRST_PROGRAM } from "../support/walks/steps.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const tsc = join(root, "node_modules", "typescript", "bin", "tsc");

/** What a program does that uses the package, without anything of Node or of a browser. */
const PROGRAM = `
import { type OpenOptions, openSandbox, SandboxError, type Sandbox, type SandboxOptions } from "glovebox";
const options: SandboxOptions = { network: "none", limits: { memory: 1e9 } };
await using sandbox: Sandbox = await openSandbox(options);
const { stdout, exitCode }: { stdout: string; exitCode: number } = await sandbox.exec({ argv: ["true"] });
export const text: string = stdout.slice(exitCode);
export const isOurs = (error: unknown): boolean => error instanceof SandboxError && error.code === "not_found";
// @ts-expect-error: the types are not any.
sandbox.exec({ argv: 7 });
declare global {
  interface GloveboxBackendOptions {
    folder?: { parent: string };
  }
}
export const all: OpenOptions = {
  backend: "folder",
  folder: { parent: "/srv" },
  docker: { pull: "never" },
  daytona: { target: "eu" },
  vercel: { region: "iad1" },
  dagger: { linger: 0 },
};
// @ts-expect-error: the options of a backend are checked.
export const wrong: OpenOptions = { folder: { parent: 7 } };
// @ts-expect-error: the options of a backend are checked.
export const other: OpenOptions = { daytona: { target: 7 } };
`;

/** Their types are those of frameworks, which are not installed here: `npm run test:adapters` compiles them. */
const OF_FRAMEWORKS = [
  ...["./adk", "./claude-agent-sdk", "./computesdk", "./deepagents", "./langchain", "./mastra", "./openai-agents"],
];

const STRICT = {
  ...{ target: "es2022", strict: true, noEmit: true, skipLibCheck: false, types: [] },
  ...{ exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true, verbatimModuleSyntax: true },
};
const WAYS = {
  nodenext: { module: "nodenext" },
  bundler: { module: "esnext", moduleResolution: "bundler" },
};
const LIBRARIES = {
  "no library but ES2023": { lib: ["es2023"] },
  "the default libraries": {},
};
const cases = Object.entries(WAYS).flatMap(([way, module]) =>
  Object.entries(LIBRARIES).map(([library, lib]) => ({ way, library, options: { ...STRICT, ...module, ...lib } })),
);

let installed: string;
let place: string | undefined;

beforeAll(() => {
  const reason = whyNoPackage();
  if (reason !== undefined) throw new Error(reason);
  installed = join(installPackage().place, "node_modules", "glovebox");
}, SET_UP_LIMIT);

afterEach(() => {
  if (place !== undefined) rmSync(place, { recursive: true, force: true });
  place = undefined;
});

/** Installs the types of the package in a place of its own. */
function install({ nodeTypes }: { nodeTypes: boolean }): string {
  const made = mkdtempSync(join(tmpdir(), "glovebox-consumer-"));
  place = made;
  const modules = join(made, "node_modules");
  cpSync(join(installed, "dist"), join(modules, "glovebox", "dist"), { recursive: true });
  cpSync(join(installed, "package.json"), join(modules, "glovebox", "package.json"));
  if (nodeTypes) {
    mkdirSync(join(modules, "@types"));
    symlinkSync(join(root, "node_modules", "@types", "node"), join(modules, "@types", "node"));
  }
  writeFileSync(join(made, "package.json"), JSON.stringify({ type: "module" }));
  return made;
}

/** What the compiler says of a program that imports every entry point of the package. */
async function compile(compilerOptions: object, { nodeTypes }: { nodeTypes: boolean }): Promise<string> {
  const at = install({ nodeTypes });
  const { exports } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8")) as { exports: object };
  // Who writes a backend has streams of Node at hand, and so their types.
  const without = [...(nodeTypes ? [] : ["./backend"]), ...OF_FRAMEWORKS];
  const entries = Object.keys(exports).filter((name) => !name.endsWith(".json") && !without.includes(name));
  const imports = entries.map((name, at) => `export * as entry${at} from "${name.replace(/^\./, "glovebox")}";`);
  writeFileSync(join(at, "main.ts"), `${imports.join("\n")}${PROGRAM}`);
  writeFileSync(join(at, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["main.ts"] }));
  const { stdout } = await promisify(execFile)(process.execPath, [tsc, "-p", at]).catch((error) => error);
  return stdout;
}

describe.each(cases)("a strict program, resolved by $way, with $library", ({ options }) => {
  it("compiles without asking for the types of Node", async () => {
    expect(await compile(options, { nodeTypes: true })).toBe("");
  });

  it("compiles where the types of Node are not installed", async () => {
    expect(await compile(options, { nodeTypes: false })).toBe("");
  });
});

describe("the first program of the readme", () => {
  it.each([
    ["node16", { module: "node16" }],
    ["bundler", WAYS.bundler],
  ])("compiles as TypeScript, resolved by %s, and runs", async (_, module) => {
    const at = install({ nodeTypes: true });
    symlinkSync(join(installed, "guest"), join(at, "node_modules", "glovebox", "guest"));
    const compilerOptions = { ...STRICT, ...module, noEmit: false, types: ["node"] };
    writeFileSync(join(at, "first.ts"), FIRST_PROGRAM);
    writeFileSync(join(at, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["first.ts"] }));
    const compiled = await promisify(execFile)(process.execPath, [tsc, "-p", at]).catch((error) => error);
    expect(compiled.stdout).toBe("");
    if (process.platform !== "linux") return;
    const { stdout } = await promisify(execFile)(process.execPath, [join(at, "first.js")]);
    expect(stdout).toMatch(/^0 hello from \/\S+\n1 cat: \/etc\/shadow: No such file or directory\n$/);
  });
});
