import { chmodSync, copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createManagers, type Manager, type Managers } from "../../../support/local/manager.js";

let managers: Managers;
let place: string;
const BWRAP = "/usr/bin/bwrap";
const canTry = process.getuid?.() === 0 && existsSync(BWRAP) && existsSync("/usr/bin/unshare");
beforeAll(() => {
  managers = createManagers();
  place = join(managers.directory, "bwrap");
  mkdirSync(join(place, "run"), { recursive: true });
  writeFileSync(join(place, "run", "docker.sock"), "");
  copyFileSync(BWRAP, join(place, "real"));
});
afterAll(() => managers.remove());

/** Opens a sandbox in a mount namespace in which another program stands for bubblewrap. */
async function openBehind(manager: Manager, bwrap: string, command = "touch made; echo ran"): Promise<string> {
  const script = `mount --bind "${bwrap}" ${BWRAP} && exec "$@"`;
  const through = ["unshare", "--mount", "sh", "-c", script, "sh"];
  const told = await manager.run({ through, scripts: [command] }).then(
    ({ results }) => `opened: ${results[0]?.stdout}`,
    (error: Error) => error.message,
  );
  const left = [...readdirSync(join(manager.home, "tmp")), ...readdirSync(join(manager.home, "state", "sandboxes"))];
  expect(left).toEqual([]);
  return told;
}

function program(name: string, lines: string): string {
  const path = join(place, name);
  writeFileSync(path, `#!/bin/sh\n${lines}\n`);
  chmodSync(path, 0o755);
  return path;
}

/** Runs the real one with these of its arguments taken away or replaced. */
const changed = (pattern: string, replacement: string): string => `
  first=1
  for argument in "$@"; do
    [ $first = 1 ] && set -- && first=0
    case "$argument" in ${pattern}) ${replacement} ;; *) set -- "$@" "$argument" ;; esac
  done
  exec "${place}/real" "$@"`;

describe.runIf(canTry)("without walls nothing runs", () => {
  let manager: Manager;
  beforeAll(() => {
    manager = managers.all[0] as Manager;
  });

  test("the real one, by the same way, does", async () => {
    expect(await openBehind(manager, program("same", changed("nothing", ":")))).toBe("opened: ran\n");
  });

  test("bubblewrap is not there", async () => {
    expect(await openBehind(manager, "/dev/null")).toMatch(/no_isolation: bubblewrap is not installed/);
  });

  test("bubblewrap complains and ends", async () => {
    const refusing = program("refusing", "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1");
    expect(await openBehind(manager, refusing)).toMatch(/no_isolation: .*setting up uid map: Permission denied/);
  });

  test("bubblewrap only runs the program", async () => {
    const agent = join(managers.directory, "guest", "bin", `linux-${process.arch}`, "glovebox-guest");
    const bare = program("bare", `while [ "$1" != /glovebox/guest ]; do shift; done; shift; exec "${agent}" "$@"`);
    expect(await openBehind(manager, bare)).toMatch(/no_isolation: /);
  });

  test.each<[string, string, string, RegExp]>([
    ["the network", "--unshare-net", ":", /more than the loopback device/],
    ["a writable system", "--chdir", 'set -- "$@" --tmpfs /usr --chdir', /the root is writable/],
    ["a socket of the host", "--chdir", `set -- "$@" --bind "${"$PLACE"}" /run --chdir`, /a host socket is visible/],
  ])("bubblewrap leaves %s", async (name, pattern, replacement, complaint) => {
    const path = program(
      name.replaceAll(" ", "-"),
      changed(pattern, replacement.replace("$PLACE", join(place, "run"))),
    );
    const told = await openBehind(manager, path);
    expect(told).toMatch(complaint);
    expect(told).toMatch(/no_isolation: the self-test of the sandbox failed/);
  });

  test("bubblewrap leaves every capability: commands still have none", async () => {
    const path = program("capable", changed("--cap-drop", 'set -- "$@" --cap-add'));
    const told = await openBehind(manager, path, "grep -E '^Cap(Eff|Bnd)' /proc/self/status | uniq -f 1");
    expect(told).toBe("opened: CapEff:\t0000000000000000\n");
  });
});
