import { existsSync, mkdirSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";

const ORIGIN = "http://site.test";
/** A telephone, a small tablet and a desk; the widths at which the theme changes its shape lie between them. */
const VIEWS = [
  { name: "narrow", width: 390 },
  { name: "middle", width: 820 },
  { name: "wide", width: 1440 },
];
/** Pages of each kind; a picture of them is kept, light and dark. */
const SHOWN = ["index.html", "README.html", "docs/cli.html", "docs/security.html", "api/glovebox.html"];

/** Why a browser cannot look at the website here; undefined if it can. */
export function whyNoBrowser() {
  return browserPath() === undefined ? "there is no chromium (apt-get install chromium)" : undefined;
}

function browserPath() {
  return ["/usr/bin/chromium", "/usr/bin/chromium-browser"].find((path) => existsSync(path));
}

/**
 * Looks at every page of a built website in a real browser: nothing may be wider than the window, and no script may fail. Keeps
 * pictures of some in `pictures`, and tries the search. Nothing listens and nothing leaves: the browser reads the folder.
 */
export async function lookAtSite(folder, { base, pictures }) {
  rmSync(pictures, { recursive: true, force: true });
  mkdirSync(pictures, { recursive: true });
  const { chromium } = await import("playwright-core");
  const browser = await chromium.launch({ executablePath: browserPath() });
  try {
    const pages = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".html"));
    const faults = [];
    for (const view of VIEWS) {
      for (const colorScheme of ["light", "dark"]) {
        const context = await browser.newContext({ colorScheme, viewport: { width: view.width, height: 900 } });
        await context.route("**", (route) => answer(route, folder, base));
        const names = colorScheme === "light" ? pages : pages.filter((name) => SHOWN.includes(name));
        const name = `${view.name}-${colorScheme}`;
        faults.push(...(await lookAt(await context.newPage(), names, { base, pictures, name })));
        await context.close();
      }
    }
    return { views: VIEWS.length, faults: [...new Set(faults)] };
  } finally {
    await browser.close();
  }
}

async function lookAt(page, names, { base, pictures, name: view }) {
  const faults = [];
  page.setDefaultTimeout(120_000);
  let current = "";
  page.on("pageerror", (error) => faults.push(`${current}: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") faults.push(`${current}: ${message.text()}`);
  });
  for (const name of names) {
    current = `${name}, ${view}`;
    await page.goto(`${ORIGIN}${base}${name}`, { waitUntil: "load" });
    await page.evaluate("document.fonts.ready");
    const [has, wants] = await page.evaluate("[innerWidth, document.documentElement.scrollWidth]");
    if (wants > has) faults.push(`${current}: it is ${wants} pixels wide in a window of ${has}`);
    if (SHOWN.includes(name)) {
      const file = `${name.replace(/\.html$/, "").replaceAll("/", "-")}-${view}.png`;
      await page.screenshot({ path: join(pictures, file) });
    }
  }
  current = `search, ${view}`;
  await page.goto(`${ORIGIN}${base}index.html`);
  await page.locator(".VPNavBarSearch button").first().click();
  await page.locator("#localsearch-input").fill("openSandbox");
  await page.locator('.results a[href*="#openSandbox"]').first().waitFor();
  return faults;
}

/** Answers a request with a file of the website, as a host without rules of its own does. */
async function answer(route, folder, base) {
  const { origin, pathname } = new URL(route.request().url());
  const path = join(folder, decodeURIComponent(pathname.slice(base.length)));
  if (origin !== ORIGIN) await route.abort();
  else if (existsSync(path) && statSync(path).isFile()) await route.fulfill({ path });
  else await route.fulfill({ status: 404, body: "not found" });
}
