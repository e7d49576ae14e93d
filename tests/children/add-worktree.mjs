// Makes records with worktrees, one after the other or at once, and ends, waits or keeps them.
const [, , directory, mode, repo, parent, ...names] = process.argv;
const load = (name) => import(`${directory}/src/${name}.js`);
const { createRecord, updateRecord } = await load("ledger");
const { findRepository } = await load("sandbox/git/repository/repository");
const { addWorktree } = await load("sandbox/git/worktree/worktree");

const repository = await findRepository(repo, { gitFilters: process.env.TEST_GIT_FILTERS?.split(",") });
const make = async (name) => {
  const path = `${parent}/harness-${name}`;
  await createRecord({ id: name, backend: "local", workDir: path });
  await addWorktree({ repository, branch: `work/${name}`, path, record: name });
  await updateRecord(name, { state: "ready" });
};
await Promise.all(names.map(make));
console.log("made");
if (mode === "keep") for (const name of names) await updateRecord(name, { state: "kept", owner: undefined });
if (mode === "wait") await new Promise((resolve) => setTimeout(resolve, 600_000));
