// Meets a place that is full, read-only or gone, or a process without free descriptors, with a sandbox open. Prints what
// came of each call meanwhile, then of the same calls once everything is well again.
import { spawnSync } from "node:child_process";
import { closeSync, openSync, rmSync, writeSync } from "node:fs";

const [, , directory, text] = process.argv;
const { fault, place, options } = JSON.parse(text);
const { createLocalSandbox } = await import(`${directory}/src/sandbox/local.js`);
const { listSandboxes, reap } = await import(`${directory}/src/sandbox/reap.js`);
const { deleteSnapshot, listSnapshots } = await import(`${directory}/src/sandbox/snapshots.js`);

const mount = (...args) => {
  const { status, stderr } = spawnSync("mount", args);
  if (status !== 0) throw new Error(`mount: ${stderr}`);
};
const faults = {
  full() {
    const filler = `${place}/filler`;
    const file = openSync(filler, "wx");
    // Down to the last byte: what is smaller than a block still finds room otherwise.
    for (const size of [1 << 16, 1 << 12, 1]) {
      try {
        for (;;) writeSync(file, Buffer.alloc(size));
      } catch {}
    }
    closeSync(file);
    return () => rmSync(filler);
  },
  "read-only"() {
    mount("-o", "remount,ro", place);
    return () => mount("-o", "remount,rw", place);
  },
  deleted() {
    rmSync(place, { recursive: true });
    return () => {};
  },
  descriptors() {
    const held = [];
    try {
      for (;;) held.push(openSync("/dev/null", "r"));
    } catch {}
    return () => {
      for (const fd of held) closeSync(fd);
    };
  },
};

const events = [];
const onEvent = ({ type, message }) => events.push({ type, message });
const outcome = async (work) => {
  try {
    await work();
    return "ok";
  } catch (error) {
    return error.name === "SandboxError" ? error.code : `${error.name}: ${error.message}`;
  }
};
const round = async (sandbox) => {
  const opened = [];
  const said = {
    create: await outcome(async () => opened.push(await createLocalSandbox({ ...options, onEvent }))),
    exec: await outcome(() => sandbox.exec({ argv: ["true"] })),
    snapshot: await outcome(() => sandbox.snapshot()),
    list: await outcome(async () => {
      for (const { state } of await listSandboxes()) if (state === "damaged") throw new Error("a record is damaged");
    }),
    reap: await outcome(async () => {
      const { failed } = await reap();
      if (failed.length > 0) throw failed[0].error;
    }),
  };
  await Promise.all(opened.map((each) => each.teardown()));
  return said;
};

const sandbox = await createLocalSandbox({ ...options, onEvent });
await sandbox.writeFile("state.txt", "x".repeat(10_000));
const first = await sandbox.snapshot();
const mend = faults[fault]();
const meanwhile = await round(sandbox).finally(mend);
const later = await round(sandbox);
const kept = (await listSnapshots()).some(({ id }) => id === first);
for (const { id } of await listSnapshots()) await deleteSnapshot(id);
await sandbox.teardown();
const left = (await listSandboxes()).length;
console.log(JSON.stringify({ meanwhile, later, kept, left, leaks: events.filter(({ type }) => type === "leak") }));
