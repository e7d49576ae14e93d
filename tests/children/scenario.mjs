// Does one thing with a sandbox, again and again until it succeeds, and takes the sandbox away. Prints what happened,
// a JSON object a line: what failed, what was acknowledged, what a user was told.
const [, , directory, text] = process.argv;
const { scenario, options, marker, token } = JSON.parse(text);
const { createLocalSandbox } = await import(`${directory}/src/sandbox/local.js`);
const { reap } = await import(`${directory}/src/sandbox/reap.js`);
const ATTEMPTS = 16;

const say = (fields) => console.log(JSON.stringify(fields));
let leaks = 0;
const onEvent = ({ type, message }) => {
  if (type === "leak") leaks += 1;
  if (type === "leak" || type === "warning") say({ told: message });
};

const insist = async (operation, work) => {
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    try {
      return await work();
    } catch ({ code, message }) {
      say({ failed: operation, code, message });
    }
  }
  throw new Error(`${operation} never succeeds`);
};
const open = (more) => insist("open", () => createLocalSandbox({ ...options, ...more, onEvent }));
const close = (sandbox) =>
  insist("teardown", async () => {
    leaks = 0;
    await sandbox.teardown();
    if (leaks > 0) throw new Error("something is left");
  });
const save = async (sandbox, content, more = { "ignored/state.txt": content }) => {
  await sandbox.writeFiles({ "state.txt": content, ...more });
  const id = await insist("snapshot", () => sandbox.snapshot());
  say({ acknowledged: id, content });
  return id;
};

const scenarios = {
  async create() {
    await close(await open());
  },
  async named() {
    await close(await open({ name: "mine" }));
    // The name is free again.
    await close(await open({ name: "mine" }));
  },
  // Apart from what fails while a sandbox is made: undoing that removes without a word.
  async freed() {
    await scenarios.named();
  },
  async overlay() {
    await close(await open({ workspace: "overlay" }));
  },
  async exec() {
    const sandbox = await open();
    const script = "for i in 1 2 3 4 5; do sleep 0.1; done; echo done";
    const { stdout } = await insist("exec", () => sandbox.exec({ argv: ["sh", "-c", script, marker] }));
    say({ stdout });
    await close(sandbox);
  },
  async snapshot() {
    const sandbox = await open();
    await save(sandbox, "one");
    await save(sandbox, "two");
    await close(sandbox);
  },
  /** Changes that need no git. */
  async plain() {
    const sandbox = await open();
    await save(sandbox, "plain one", {});
    await save(sandbox, "plain two", { "new/file": "new" });
    await close(sandbox);
  },
  async restore() {
    const sandbox = await open();
    const id = await save(sandbox, "one");
    await sandbox.writeFile("state.txt", "changed");
    await insist("restore", () => sandbox.restore(id));
    say({ content: await sandbox.readFile("state.txt"), ignored: await sandbox.readFile("ignored/state.txt") });
    await close(sandbox);
  },
  /** One more sandbox, from the snapshot of the first. */
  async start() {
    const sandbox = await open();
    const snapshot = await save(sandbox, "one");
    const other = await open({ snapshot, branch: "from-snapshot" });
    say({ content: await other.readFile("state.txt"), ignored: await other.readFile("ignored/state.txt") });
    for (const each of [other, sandbox]) await close(each);
  },
  async fork() {
    const sandbox = await open();
    await sandbox.writeFile("state.txt", "one");
    const forks = await insist("fork", () => sandbox.fork({ count: 2 }));
    for (const fork of forks) say({ content: await fork.readFile("state.txt") });
    for (const each of [...forks, sandbox]) await close(each);
  },
  async push() {
    const sandbox = await open();
    await sandbox.writeFile("state.txt", "one");
    const { pushed, error } = await insist("push", () => sandbox.pushBranch("work", token));
    say({ pushed, error });
    await close(sandbox);
  },
  async teardown() {
    await close(await open());
  },
  async reap() {
    await insist("reap", async () => {
      const { failed } = await reap({ onEvent });
      if (failed.length > 0) throw new Error(failed.map(({ error }) => error.message).join());
    });
  },
};
await scenarios[scenario]();
