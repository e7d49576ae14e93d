import { rmSync } from "node:fs";
import { join } from "node:path";
import { installDependencies, root } from "./prepare.mjs";
import { endAllOnInterrupt, run } from "./processes.mjs";
import { checkBuilt } from "./site/check-built.mjs";
import { expectSuccess, StepFailed, step } from "./step.mjs";

/**
 * Builds the website into `site/dist/` and checks its links: `site.mjs [--base /path/] [--look] [--serve] [--if-installable]`. The
 * generator has a package of its own, which is installed when needed. With `--look` a real browser looks at each
 * page, and keeps pictures in `site/.pictures/`. With `--serve` the site is then shown on this machine. With
 * `--if-installable` a generator that npm cannot install is a reason not to build, and no failure.
 */
const folder = join(root, "site");
const out = join(folder, "dist");
const args = process.argv.slice(2);
const base = args.includes("--base") ? args[args.indexOf("--base") + 1] : "/";
const env = { ...process.env, SITE_BASE: base };
const vitepress = (...words) => [join(folder, "node_modules", "vitepress", "bin", "vitepress.js"), ...words, folder];

endAllOnInterrupt();
try {
  await step("packages of the site", install);
  await step("pages", async () => {
    const { writePages } = await import("./site/pages.mjs");
    await writePages(root, join(folder, ".pages"));
  });
  await step("website", build);
  await step("links of the website", () => {
    const { pages, links, faults } = checkBuilt(out, base);
    if (faults.length > 0) throw new StepFailed(faults.join("\n"));
    return `${links} links on ${pages} pages`;
  });
  if (args.includes("--look")) await step("website in a browser", look);
  console.log(`  ${out}`);
  if (args.includes("--serve")) await run(process.execPath, vitepress("preview", "--host", "127.0.0.1"), { env });
} catch (error) {
  if (!(error instanceof StepFailed)) throw error;
  process.exitCode = 1;
}

/** Ends this program if the packages are not to be had and that is no failure. */
async function install() {
  try {
    return await installDependencies(folder);
  } catch (error) {
    if (!args.includes("--if-installable") || !error.message.startsWith("npm install ended with")) throw error;
    console.log(
      `  not run: the website: its generator cannot be installed: ${error.message.split("\n").slice(0, 3).join(" ")}`,
    );
    process.exit(0);
  }
}

async function look() {
  const { lookAtSite, whyNoBrowser } = await import("./site/look.mjs");
  const reason = whyNoBrowser();
  if (reason !== undefined) return `not run: ${reason}`;
  const { views, faults } = await lookAtSite(out, { base, pictures: join(folder, ".pictures") });
  if (faults.length > 0) throw new StepFailed(faults.join("\n"));
  return `${views} widths, light and dark`;
}

async function build() {
  rmSync(out, { recursive: true, force: true });
  expectSuccess(await run(process.execPath, vitepress("build"), { cwd: folder, env, quiet: true }), "vitepress");
}
