// Lives through the same again and again, each time with another change of a file failing: see faulty-io.c. Prints what was
// acknowledged, and what is wrong: a JSON object a line.
import { readFileSync, writeFileSync } from "node:fs";

const [, , directory, text] = process.argv;
const { life, step, options, control, isLasting } = JSON.parse(text);
const { createLocalSandbox } = await import(`${directory}/src/sandbox/local.js`);
const ledger = await import(`${directory}/src/ledger/records.js`);
const { withLock } = await import(`${directory}/src/machine/lock.js`);
const { removeUnfinishedSnapshots } = await import(`${directory}/src/sandbox/git/snapshot/remove-snapshot.js`);
const { readSnapshotRecords, removeSnapshotRecord, writeSnapshotRecord } = await import(
  `${directory}/src/ledger/snapshot-record.js`
);

const say = (fields) => console.log(JSON.stringify(fields));
const setPlan = (fails) => {
  const numbers = new BigInt64Array([BigInt(fails), isLasting ? 1n : 0n, 0n]);
  writeFileSync(control, new Uint8Array(numbers.buffer), { flag: "r+" });
};
const changes = () => Number(readFileSync(control).readBigInt64LE(16));

const acknowledged = [];
let failures = [];
/** Whether something succeeded; a failure must have a type. */
const attempt = async (work) => {
  try {
    return (await work()) ?? true;
  } catch (error) {
    failures.push(["SandboxError", "Error"].includes(error.name) && error.code ? error.code : String(error.stack));
    return false;
  }
};
const wrong = (n, what) => say({ wrong: `change ${n}: ${what}` });

/** Each gives a look at what must be true once the disk is well again. */
const lives = {
  async ledger(n) {
    const id = `ledger-${n}`;
    const resource = { kind: "directory", path: `/nowhere/${n}` };
    const made = await attempt(() => ledger.createRecord({ id, backend: "local", workDir: "/nowhere" }));
    const noted = made && (await attempt(() => ledger.addResource(id, resource)));
    const kept = made && (await attempt(() => ledger.updateRecord(id, { state: "kept" })));
    await attempt(() => withLock("name", async () => undefined));
    const saved = { version: 1, id: `${id}-1-abcdef`, sandboxId: id, backend: "local", createdAt: "2001-01-01" };
    const isSaved = await attempt(() => writeSnapshotRecord(saved));
    const gone = kept && (await attempt(() => ledger.removeRecord(id)));
    return async () => {
      const record = await ledger.readRecord(id);
      if (gone && record !== undefined) wrong(n, "a record that was struck out is there");
      if (made && !gone && !kept && record === undefined) wrong(n, "a record is lost");
      if (record && noted && record.resources.length !== 1) wrong(n, "a resource is lost");
      if (record && kept && record.state !== "kept") wrong(n, `the state is ${record.state}`);
      const found = (await readSnapshotRecords()).some((each) => each.id === saved.id);
      if (isSaved && !found) wrong(n, "a snapshot is lost");
      await withLock("name", async () => undefined, { timeout: 5_000 }).catch((error) => wrong(n, error.message));
      await ledger.removeRecord(id);
      await removeSnapshotRecord(saved.id);
      await removeUnfinishedSnapshots(id, undefined);
      await ledger.sweepLedger();
    };
  },
  async sandbox(n) {
    const content = String(n);
    const sandbox = await attempt(() => createLocalSandbox(options));
    if (!sandbox) return async () => undefined;
    await attempt(() => sandbox.writeFiles({ "state.txt": content, "ignored/state.txt": content }));
    const id = await attempt(() => sandbox.snapshot());
    if (id) acknowledged.push({ acknowledged: id, content });
    await sandbox.teardown();
    return async () => sandbox.teardown();
  },
};

setPlan(0);
await (await lives[life](0))();
if (failures.length > 0) wrong(0, failures.join());
setPlan(0);
const check = await lives[life](0);
const total = changes();
await check();
let told = 0;
for (let n = 1; n <= total; n += step) {
  failures = [];
  setPlan(n);
  const look = await lives[life](n);
  setPlan(0);
  told += failures.length > 0 ? 1 : 0;
  for (const failure of failures) if (!/^[A-Za-z_]+$/.test(failure)) wrong(n, failure);
  await look();
  const damaged = (await ledger.listRecords()).filter((entry) => "damaged" in entry);
  if (damaged.length > 0) wrong(n, JSON.stringify(damaged));
}
for (const each of acknowledged) say(each);
say({ total, told });
process.exit();
