import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { madeForRun } from "./made-for-run.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const LIST = "packed.json";

/** This package as `npm pack` makes it, installed in a folder that has nothing else. */
export interface InstalledPackage {
  readonly place: string;
  readonly tarball: string;
  /** Paths of the files in the tarball. */
  readonly packed: readonly string[];
}

/** Why there is nothing to pack; undefined when there is. */
export function whyNoPackage(): string | undefined {
  const isBuilt = existsSync(join(root, "dist", "src", "index.js"));
  return isBuilt ? undefined : "there is no dist/: type npm run build first";
}

/** Packs and installs it, once for all tests of a run. */
export function installPackage(): InstalledPackage {
  const place = madeForRun("package", (folder) => {
    const stdout = execFileSync("npm", ["pack", "--json", "--pack-destination", folder], quiet(root)).toString();
    const [{ filename }] = JSON.parse(stdout) as [{ filename: string }];
    writeFileSync(join(folder, LIST), stdout);
    const yaml = "yaml.tgz";
    execFileSync("tar", ["-czf", join(folder, yaml), "-C", join(root, "node_modules"), "yaml"]);
    // Without a network: there is nothing else to fetch than what it declares.
    const env = { ...process.env, npm_config_cache: join(folder, "cache") };
    const args = ["install", "--offline", "--no-audit", "--no-fund", `./${filename}`, `./${yaml}`];
    execFileSync("npm", args, { ...quiet(folder), env });
  });
  const [pack] = JSON.parse(readFileSync(join(place, LIST), "utf8")) as [
    { filename: string; files: { path: string }[] },
  ];
  return { place, tarball: join(place, pack.filename), packed: pack.files.map(({ path }) => path) };
}

function quiet(cwd: string): { cwd: string; stdio: ["ignore", "pipe", "pipe"] } {
  return { cwd, stdio: ["ignore", "pipe", "pipe"] };
}
