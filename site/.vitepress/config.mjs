import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vitepress";
import { slugOf } from "../../scripts/site/markdown.mjs";

const pages = new URL("../.pages/", import.meta.url);
const { title, description, version, nav, sidebar } = JSON.parse(readFileSync(new URL("site.json", pages), "utf8"));

export default defineConfig({
  title,
  description,
  lang: "en",
  srcDir: fileURLToPath(pages),
  outDir: fileURLToPath(new URL("../dist", import.meta.url)),
  cacheDir: fileURLToPath(new URL("../node_modules/.cache", import.meta.url)),
  base: process.env.SITE_BASE ?? "/",
  head: [["link", { rel: "icon", type: "image/svg+xml", href: `${process.env.SITE_BASE ?? "/"}logo.svg` }]],
  markdown: {
    // The anchors of the repository's own pages, so that a link works in both places.
    anchor: { slugify: slugOf },
    theme: { light: "github-light", dark: "github-dark" },
    languageAlias: { console: "shellsession" },
    config: showBraces,
  },
  vite: { publicDir: fileURLToPath(new URL("../public", import.meta.url)) },
  themeConfig: {
    logo: "/logo.svg",
    nav,
    sidebar,
    outline: [2, 3],
    search: { provider: "local" },
    footer: { message: `Version ${version} · MIT licence` },
    docFooter: { prev: "Previous", next: "Next" },
  },
});

/** Shows double braces as they are, as blueprints have them; the generator would take them for expressions. */
function showBraces({ renderer, utils }) {
  const { code_inline: inline } = renderer.rules;
  renderer.rules.text = (tokens, index) => utils.escapeHtml(tokens[index].content).replaceAll("{{", "&#123;&#123;");
  renderer.rules.code_inline = (tokens, index, ...rest) => {
    tokens[index].attrSet("v-pre", "");
    return inline(tokens, index, ...rest);
  };
}
