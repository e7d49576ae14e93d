// A process that uses sandboxes while a failpoint kills it or makes one of its calls fail.
const [, , entry, text] = process.argv;
const { openSandbox, reap } = await import(entry);

const attempt = async (work) => {
  try {
    return await work();
  } catch (error) {
    // Any other error is a bug, whatever the failpoint did.
    if (error.name !== "SandboxError") throw error;
    return undefined;
  }
};
const sandbox = await attempt(() => openSandbox(JSON.parse(text)));
if (sandbox !== undefined) {
  await attempt(() =>
    sandbox.exec({ argv: ["sh", "-c", "echo 1 > new.txt; mkdir -p ignored; echo 2 > ignored/new.txt"] }),
  );
  const id = await attempt(() => sandbox.snapshot());
  if (id !== undefined) await attempt(() => sandbox.restore(id));
  const fork = await attempt(() => sandbox.fork());
  await fork?.teardown();
  await sandbox.teardown();
}
await attempt(() => reap());
