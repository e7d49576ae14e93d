import { execFile, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/commands.js";

const root = fileURLToPath(new URL("../..", import.meta.url));
const read = (path: string): string => readFileSync(join(root, path), "utf8");

interface Section {
  readonly title: string;
  readonly pages: readonly (string | { page: string; title: string })[];
}

describe("the navigation of the website", () => {
  const sections = JSON.parse(read("site/navigation.json")) as Section[];
  const pages = sections
    .flatMap((section) => section.pages)
    .map((page) => (typeof page === "string" ? page : page.page));

  it("has every document once", () => {
    const names = readdirSync(join(root, "docs")).filter((name) => name.endsWith(".md"));
    const documents = names.map((name) => `docs/${name}`);
    const wanted = ["README.md", "CHANGELOG.md", "SECURITY.md", "api", "examples", ...documents];
    expect(pages).toEqual(expect.arrayContaining(wanted));
    expect(pages.filter((page, index) => pages.indexOf(page) !== index)).toEqual([]);
  });

  it("names only what exists, and each document has a title", () => {
    expect(pages.filter((page) => !existsSync(join(root, page)))).toEqual([]);
    const documents = pages.filter((page) => page.endsWith(".md"));
    expect(documents.filter((page) => !/^# \S/m.test(read(page)))).toEqual([]);
  });

  it("leads from the landing page only to pages that it has", () => {
    const home = read("site/home.json");
    const links = [...home.matchAll(/"link": "\/([^"#]*)/g)].map(([, link = ""]) => link);
    expect(links.length).toBeGreaterThan(5);
    const known = new Set(pages.flatMap((page) => [page.replace(/\.md$/, ""), `${page}/`]));
    expect(links.filter((link) => !known.has(link))).toEqual([]);
  });
});

describe("the package of the website", () => {
  it("is not part of the project's own packages, and its lock file has no addresses", () => {
    const { dependencies } = JSON.parse(read("site/package.json")) as { dependencies: Record<string, string> };
    const lock = JSON.parse(read("site/package-lock.json")) as { packages: Record<string, { resolved?: string }> };
    expect(lock.packages[""]).toMatchObject({ dependencies });
    expect(Object.keys(lock.packages).filter((name) => lock.packages[name]?.resolved !== undefined)).toEqual([]);
    expect(read("package-lock.json")).not.toContain("vitepress");
    const { files } = JSON.parse(read("package.json")) as { files: string[] };
    expect(files.filter((pattern) => pattern.startsWith("site"))).toEqual([]);
  });
});

describe("the reference of the command line", () => {
  it("is that of the table that the help prints", () => {
    const { status, stderr } = spawnSync(process.execPath, [join(root, "scripts", "cli-reference.mjs"), "--check"], {
      encoding: "utf8",
    });
    expect({ status, stderr }, "the verbs changed: type npm run docs and commit docs/cli.md").toEqual({
      status: 0,
      stderr: "",
    });
  });

  it("has a section for every verb, with its synopsis, its flags and its examples", () => {
    const page = read("docs/cli.md");
    for (const { name, operands, flags, examples } of COMMANDS) {
      const [, section = ""] = page.split(new RegExp(`^### glovebox ${name}$`, "m"));
      const text = section.split(/^##/m)[0]?.replaceAll("\\|", "|") ?? "";
      const wanted = [
        ["glovebox", name, "[flags]", operands].filter(Boolean).join(" "),
        ...flags.filter((flag) => flag.name !== "help").map((flag) => `--${flag.name}`),
        ...examples.map(([line]) => line),
      ];
      expect({ name, missing: wanted.filter((each) => !text.includes(each)) }).toEqual({ name, missing: [] });
      expect(page).toContain(`(#glovebox-${name})`);
    }
  });
});

describe("the API reference", () => {
  it("describes every exported name of every entry point, each once", async () => {
    const source = `
      import { readFileSync } from "node:fs";
      import { apiPages } from "./scripts/site/api-pages.mjs";
      const pages = await apiPages({ root: process.cwd(), ...JSON.parse(readFileSync("package.json", "utf8")) });
      console.log(JSON.stringify(pages));
    `;
    const args = ["--input-type=module", "-e", source];
    const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: root, maxBuffer: 2 ** 26 });
    const [index, ...pages] = JSON.parse(stdout) as { path: string; title: string; text: string }[];
    const rootPage = pages.find(({ title }) => title === "glovebox");
    const entries = Object.entries(
      (JSON.parse(read("package.json")) as { exports: Record<string, { types?: string }> }).exports,
    );
    const typed = entries.filter(([, { types }]) => types !== undefined);
    expect(pages.map(({ title }) => title).sort()).toEqual(
      typed.map(([path]) => path.replace(/^\./, "glovebox")).sort(),
    );
    for (const [path, { types = "" }] of typed) {
      const page = pages.find(({ title }) => title === path.replace(/^\./, "glovebox"));
      const report = read(types.replace("./dist/src", "api"));
      const names = exportedNames(report);
      expect(names).not.toEqual([]);
      const described = [...(page?.text.matchAll(/^### (\S+) <Badge [^>]+> \{#(\S+)\}$/gm) ?? [])].map(
        ([, name]) => name,
      );
      expect(described.filter((name, at) => described.indexOf(name) !== at)).toEqual([]);
      const isElsewhere = (name: string): boolean =>
        Boolean(page?.text.includes(`(glovebox.md#${name})`) && rootPage?.text.includes(`{#${name}}`));
      expect(names.filter((name) => !described.includes(name) && !isElsewhere(name))).toEqual([]);
      expect(index?.text).toContain(`${names.length} names`);
    }
    // Signatures and comments are those of the source.
    expect(rootPage?.text).toMatch(/^function openSandbox\(/m);
    expect(rootPage?.text).toContain("Deadline in milliseconds.");
    const functions = pages.flatMap(({ text }) => [
      ...text.matchAll(/^### (\S+) <Badge type="info" text="function" \/>.*\n\n(```)?/gm),
    ]);
    expect(functions.length).toBeGreaterThan(50);
    expect(functions.filter(([, , code]) => code !== undefined).map(([, name]) => name)).toEqual([]);
  });

  function exportedNames(report: string): string[] {
    const list = /^export \{([^}]*)\};$/m.exec(report)?.[1] ?? "";
    return list
      .split(",")
      .map((each) =>
        each
          .trim()
          .replace(/^type /, "")
          .replace(/^.* as /, ""),
      )
      .filter(Boolean);
  }
});

describe("the checker of the built website", () => {
  let place: string;

  beforeEach(() => {
    place = mkdtempSync(join(tmpdir(), "glovebox-site-"));
  });
  afterEach(() => rmSync(place, { recursive: true, force: true }));

  const good = {
    "index.html":
      '<h1 id="top">x</h1><a href="/base/docs/a.html#one">a</a><a href="#top">b</a><img src="/base/logo.svg">',
    "docs/a.html":
      '<h1 id="one">x</h1><a href="../index.html">b</a><a href="./">c</a><a href="https://example.org/">d</a>',
    "docs/index.html": "<script>const a = '<a href=\"/gone\">';</script>",
    "logo.svg": "",
  };

  it("stays green on a whole one", () => {
    expect(check(good)).toEqual({ pages: 3, links: 6, faults: [] });
  });

  it.each([
    ["a missing page", '<a href="/base/gone.html">', "index.html links to /base/gone.html: there is no such page"],
    ["a page without its ending", '<a href="docs/a">', "index.html links to docs/a: there is no such page"],
    [
      "a missing anchor",
      '<a href="docs/a.html#two">',
      "index.html links to docs/a.html#two: the page has no such anchor",
    ],
    ["a page above its base", '<a href="/docs/a.html">', "index.html links to /docs/a.html: it is not below /base/"],
    ["an expression", "<p>{{ title }}</p><code>{{ x }}</code>", "index.html shows {{ title }}"],
    ["an anchor that is there twice", '<p id="a"><p id="a">', "index.html has the anchor a twice"],
  ])("goes red on %s", (_, html, fault) => {
    expect(check({ ...good, "index.html": html })).toMatchObject({ faults: [fault] });
  });

  function check(files: Record<string, string>): unknown {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(place, path)), { recursive: true });
      writeFileSync(join(place, path), text);
    }
    const source = `
      import { checkBuilt } from "./scripts/site/check-built.mjs";
      console.log(JSON.stringify(checkBuilt(process.argv[1], "/base/")));
    `;
    const args = ["--input-type=module", "-e", source, place];
    const { stdout, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: "utf8" });
    if (stdout === "") throw new Error(stderr);
    return JSON.parse(stdout);
  }
});
