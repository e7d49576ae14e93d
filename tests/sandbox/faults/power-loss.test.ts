import { execFileSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, test } from "vitest";
import { type Acknowledged, type CrashPlace, createCrashPlace, takeCensus } from "../../support/git/crash-place.js";
import { compileSources } from "../../support/run/compiled.js";
import { git } from "../../support/scratch.js";

const missing = whyNot();
let root: string;
let compiled: ReturnType<typeof compileSources>;
let count = 0;
beforeAll(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "glovebox-power-")));
  compiled = compileSources({ withGuests: true });
});
afterAll(() => {
  compiled.remove();
  rmSync(root, { recursive: true, force: true });
});

/** Why no disk can be lost here. */
function whyNot(): string | undefined {
  if (process.getuid?.() !== 0) return "needs root";
  try {
    execFileSync("sh", ["-c", "command -v mkfs.ext4 losetup && losetup --find"], { stdio: "ignore" });
    return undefined;
  } catch {
    return "there is no loop device, or no mkfs.ext4";
  }
}

/** A disk that writes only what it is asked to sync; `lose` takes the power away and gives it back. */
function mountDisk(): { path: string; lose(): void; remove(): void } {
  const place = join(root, `disk${++count}`);
  const path = join(place, "mount");
  const images = [join(place, "image"), join(place, "image-after")] as const;
  mkdirSync(path, { recursive: true });
  writeFileSync(images[0], "");
  truncateSync(images[0], 96 << 20);
  execFileSync("mkfs.ext4", ["-q", images[0]]);
  const mount = (image: string): void =>
    void execFileSync("mount", ["-o", "loop,commit=600,noauto_da_alloc", image, path]);
  mount(images[0]);
  return {
    path,
    lose() {
      copyFileSync(...images);
      execFileSync("umount", [path]);
      mount(images[1]);
    },
    remove: () => void execFileSync("umount", [path]),
  };
}

async function play(
  place: CrashPlace,
  scenario: string,
  fault: string,
  options: object,
  env: Record<string, string> = {},
): Promise<Acknowledged[]> {
  const args = [JSON.stringify({ scenario, options, marker: place.marker })];
  const { signal, output } = await place.start("scenario.mjs", args, { GLOVEBOX_FAILPOINTS: fault, ...env }).ended;
  if (signal !== "SIGKILL") throw new Error(`nothing was killed: ${output}`);
  const said = output
    .split("\n")
    .filter(Boolean)
    .map((line) => JSON.parse(line) as object);
  return said.filter((line): line is Acknowledged => "acknowledged" in line);
}

async function reap(place: CrashPlace): Promise<unknown> {
  return JSON.parse((await place.start("reap.mjs", [JSON.stringify({ cache: 0 })]).ended).output);
}

describe.concurrent("[F-30] the power is lost", () => {
  test.for([
    ["create", "create.ready=kill"],
    ["snapshot", "snapshot.imported=kill@2"],
    ["snapshot", "snapshot.recorded=kill@2"],
    ["plain", "snapshot.imported=kill@2"],
    ["plain", "snapshot.recorded=kill@2"],
    ["teardown", "removal.resource=kill"],
  ] as const)(
    "in %s, at %s: what was acknowledged is whole, the rest is taken away",
    async ([scenario, fault], { expect, skip }) => {
      if (missing !== undefined) skip(missing);
      const disk = mountDisk();
      try {
        const place = createCrashPlace(
          join(disk.path, `place-${scenario}-${process.pid}-${count}`),
          compiled.directory,
        );
        const before = takeCensus(place, [], []);
        execFileSync("sync", ["-f", disk.path]);
        const acknowledged = await play(place, scenario, fault, { repo: place.repo, branch: "work" });
        expect(acknowledged).toHaveLength(scenario === "snapshot" || scenario === "plain" ? 1 : 0);
        disk.lose();
        expect(await reap(place)).toMatchObject({ kept: [], failed: [] });
        expect(takeCensus(place, [], acknowledged)).toEqual(before);
      } finally {
        disk.remove();
      }
    },
  );

  test("without a repository, too, a snapshot is there", async ({ expect, skip }) => {
    if (missing !== undefined) skip(missing);
    const disk = mountDisk();
    try {
      const place = createCrashPlace(join(disk.path, `plain-${process.pid}`), compiled.directory);
      execFileSync("sync", ["-f", disk.path]);
      const [saved] = await play(place, "snapshot", "snapshot.recorded=kill@2", {});
      disk.lose();
      expect(await reap(place)).toMatchObject({ kept: [], failed: [] });
      const [, sandbox = "", number = ""] = /^(.*)-(\d+)-[0-9a-f]+$/.exec(saved?.acknowledged ?? "") ?? [];
      const own = join(place.path, "home", "snapshots", `${sandbox}.git`);
      expect(git(own, "cat-file", "blob", `refs/glovebox/${sandbox}/${number}:state.txt`)).toBe("one");
      expect(git(own, "fsck", "--full", "--strict", "--no-dangling", "--no-progress")).toBe("");
    } finally {
      disk.remove();
    }
  });

  test("of the disk that the repository is on alone: the snapshot is there, too", async ({ expect, skip }) => {
    if (missing !== undefined) skip(missing);
    const disk = mountDisk();
    const home = mkdtempSync(join(root, "home-"));
    try {
      const place = createCrashPlace(join(disk.path, `apart-${process.pid}`), compiled.directory);
      execFileSync("sync", ["-f", disk.path]);
      const options = { repo: place.repo, workspace: "copy" };
      const [saved] = await play(place, "snapshot", "snapshot.recorded=kill@2", options, { GLOVEBOX_HOME: home });
      disk.lose();
      const ref = `refs/glovebox/${saved?.acknowledged.replace(/-(\d+)-[0-9a-f]+$/, "/$1")}`;
      expect(git(place.repo, "cat-file", "blob", `${ref}:state.txt`)).toBe("one");
      expect(git(place.repo, "cat-file", "blob", `${ref.replace(/1$/, "2")}:state.txt`)).toBe("two");
      expect(git(place.repo, "fsck", "--full", "--strict", "--no-dangling", "--no-progress")).toBe("");
    } finally {
      disk.remove();
    }
  });
});
