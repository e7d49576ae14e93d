// Takes a sandbox through its whole life, and prints what each step gave as JSON, in `results`.
const [, , directory, job] = process.argv;
const { options } = JSON.parse(job);
const { createLocalSandbox } = await import(`${directory}/src/sandbox/local.js`);
const { deleteSnapshot } = await import(`${directory}/src/sandbox/snapshots.js`);
const { listSandboxes } = await import(`${directory}/src/sandbox/reap.js`);

const told = [];
const onEvent = ({ type, message }) => {
  if (type === "warning" || type === "leak") told.push(message);
};
const sandbox = await createLocalSandbox({ ...options, onEvent }).catch((error) => {
  console.log(`${error.code}: ${error.message}`);
  process.exit(1);
});
const results = {};
const run = async (box, script) => {
  const { exitCode, stdout, stderr } = await box.shell(script, { timeout: 30_000 });
  return exitCode === 0 ? stdout : `${exitCode}: ${stderr}`;
};
try {
  results.inside = await run(
    sandbox,
    "git status -s; id -u; echo in > in; git add in; git commit -qm in; echo w > work",
  );
  results.changes = (await sandbox.changes()).files.map(({ path }) => path);
  const id = await sandbox.snapshot();
  await run(sandbox, "rm -rf work in a.txt");
  await sandbox.restore(id);
  results.restored = await run(sandbox, "cat in work a.txt; git log -1 --format=%s");
  await deleteSnapshot(id);
  const forks = await sandbox.fork({ count: 2 });
  results.forks = await Promise.all(forks.map((fork) => run(fork, "cat in work; git log -1 --format=%s")));
  for (const fork of forks) await fork.teardown();
  results.way = await run(sandbox, "curl -s -m 20 -o /dev/null -w '%{http_code}' http://blocked.test/ || :");
  results.direct = await run(sandbox, "curl -s -m 20 --noproxy '*' http://192.0.2.1/ || echo $?");
} finally {
  await sandbox.teardown();
}
console.log(JSON.stringify({ id: sandbox.id, results, told, left: await listSandboxes() }));
