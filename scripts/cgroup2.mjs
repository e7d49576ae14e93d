import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { bootMachine, ensureMachine } from "./cgroup2-machine.mjs";
import { root } from "./prepare.mjs";
import { endAllOnInterrupt } from "./processes.mjs";
import { StepFailed, step } from "./step.mjs";
import { ensureMachineParts } from "./system-parts.mjs";

/**
 * `npm run test:cgroup2`: tests the limits of local sandboxes where there are control groups of version 2 only, and systemd: as root, as a user whose
 * systemd has delegated groups, and as a user without one. It boots an emulated machine. Needs `npm run build` first.
 */
const LIMIT = 15 * 60_000;
/** Users of the machine, and how each starts the program that tests. */
const AS_USER =
  "setpriv --reuid 1000 --regid 1000 --clear-groups env -i PATH=/usr/bin:/bin HOME=/home/user TMPDIR=/home/user";
const MAIN = `
cd /payload
node scripts/cgroup2-inside.mjs root
${AS_USER} XDG_RUNTIME_DIR=/run/user/1000 node scripts/cgroup2-inside.mjs user
${AS_USER} XDG_RUNTIME_DIR=/nowhere node scripts/cgroup2-inside.mjs alone
`;

const place = mkdtempSync(join(tmpdir(), "glovebox-cgroup2-"));
const clean = () => rmSync(place, { recursive: true, force: true });
endAllOnInterrupt(clean);
try {
  const whyNot = await ensureMachineParts();
  if (whyNot === undefined) await testInMachine();
  else console.log(`not run: ${whyNot}`);
} catch (error) {
  if (!(error instanceof StepFailed)) throw error;
  process.exitCode = 1;
} finally {
  clean();
}

async function testInMachine() {
  let machine;
  await step("machine", async (progress) => {
    machine = await ensureMachine(progress);
  });
  await step("limits", async () => {
    const payload = join(place, "payload");
    for (const part of ["dist/src", "guest/bin", "package.json", "scripts/cgroup2-inside.mjs"]) {
      cpSync(join(root, part), join(payload, part), { recursive: true });
    }
    writeFileSync(join(payload, "main.sh"), MAIN);
    const lines = await bootMachine(machine, { place, payload, limit: LIMIT });
    const results = lines.flatMap((line) => /^(ok|FAILED) (.*)$/.exec(line)?.slice(1, 3).join(" ") ?? []);
    for (const result of results) console.log(`      ${result}`);
    const ended = lines.filter((line) => /^done (root|user|alone)$/.test(line)).length;
    const failed = results.filter((result) => result.startsWith("FAILED")).length;
    if (failed > 0 || ended < 3)
      throw new StepFailed(`${failed} failed, ${ended} of 3 users tested\n${lines.slice(-40).join("\n")}`);
    return `${results.length} passed, as root, as a user with delegated groups, as a user without`;
  });
}
