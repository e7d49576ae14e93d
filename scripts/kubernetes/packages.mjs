import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { ClusterNotPossible } from "./cache.mjs";

const KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg";

/**
 * Lists of packages apart from the system's, from the mirrors that the system uses, with those of source packages. apt checks signatures and
 * sums of everything it fetches.
 */
export async function openPackages(folder) {
  if (spawnSync("apt-get", ["--version"]).error)
    throw new ClusterNotPossible("a cluster is built from Debian's packages, and this system has no apt-get");
  const sources = join(folder, "sources.list");
  for (const place of ["lists/partial", "cache/archives/partial", "fetched"])
    mkdirSync(join(folder, place), { recursive: true });
  writeFileSync(sources, sourceLines().join("\n"));
  const settings = {
    "Dir::Etc::sourcelist": sources,
    "Dir::Etc::sourceparts": "/dev/null",
    "Dir::State::lists": join(folder, "lists"),
    "Dir::Cache": join(folder, "cache"),
    "APT::Sandbox::User": "root",
    "Acquire::Languages": "none",
    "Acquire::Retries": "3",
  };
  const options = Object.entries(settings).flatMap(([key, value]) => ["-o", `${key}=${value}`]);
  const fetched = join(folder, "fetched");
  const apt = (command, ...args) => output(command, [...options, ...args], fetched);
  apt("apt-get", "-qq", "update");

  return {
    /** The version of a source package; undefined if there is none. */
    sourceVersion(name) {
      const { stdout } = spawnSync("apt-cache", [...options, "showsrc", "--only-source", name], { encoding: "utf8" });
      return /^Version: *(\S+)/m.exec(stdout)?.[1];
    },
    /** Unpacks binary packages below a folder without installing them; returns a line with name and version for each. */
    unpack(names, target) {
      apt("apt-get", "-qq", "download", ...names);
      return take(".deb").map((file) => {
        output("dpkg-deb", ["-x", file, target]);
        // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-deb fills it in.
        const line = output("dpkg-deb", ["-W", "--showformat=${Package} ${Version}", file]);
        rmSync(file);
        return line;
      });
    },
    /** Unpacks what upstream released, without Debian's changes. */
    unpackSource(name, target) {
      apt("apt-get", "-qq", "source", "--download-only", name);
      mkdirSync(target, { recursive: true });
      const archive = take("").find((file) => /\.orig\.tar\.[a-z0-9]+$/.test(file));
      output("tar", ["-xf", archive, "-C", target, "--strip-components=1"]);
      for (const file of take("")) rmSync(file);
    },
  };

  function take(ending) {
    return readdirSync(fetched)
      .filter((name) => name.endsWith(ending))
      .map((name) => join(fetched, name));
  }
}

/** A line for the programs and one for the sources of each place that the system's apt uses for this release. */
function sourceLines() {
  const codename = /^VERSION_CODENAME=(\w+)$/m.exec(readFileSync("/etc/os-release", "utf8"))?.[1] ?? "none";
  const format = "$(REPO_URI) $(RELEASE) $(COMPONENT)";
  const places = output("apt-get", ["indextargets", "--format", format, "Created-By: Packages"]).split("\n");
  const wanted = new Set(
    places.filter((place) => {
      const [, release, component] = place.split(" ");
      return release?.startsWith(codename) && component === "main";
    }),
  );
  if (wanted.size === 0)
    throw new ClusterNotPossible(`apt has no list of packages for ${codename}; run apt-get update`);
  const by = existsSync(KEYRING) ? `[signed-by=${KEYRING}] ` : "";
  return [...wanted].flatMap((place) => [`deb ${by}${place}`, `deb-src ${by}${place}`]);
}

function output(command, args, cwd) {
  try {
    return execFileSync(command, args, {
      cwd,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      maxBuffer: 64 << 20,
    }).trim();
  } catch (error) {
    const what = [command, ...args.filter((arg) => /^[a-z]/.test(arg))].slice(0, 3).join(" ");
    throw new Error(
      `${what} failed: ${String(error.stderr || error.message)
        .trim()
        .slice(-1_000)}`,
    );
  }
}
