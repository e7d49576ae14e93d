// Makes sandboxes on one repository, a few at a time, uses them and takes them away. Ends with 0 when nothing failed.
const [, , directory, text] = process.argv;
const { options, count, atOnce } = JSON.parse(text);
const { createLocalSandbox } = await import(`${directory}/src/sandbox/local.js`);
const { deleteSnapshot } = await import(`${directory}/src/sandbox/snapshots.js`);

let left = count;
const work = async () => {
  while (left-- > 0) {
    const sandbox = await createLocalSandbox(options);
    const { stdout } = await sandbox.exec({ argv: ["git", "status", "--porcelain"] });
    if (stdout !== "") throw new Error(`the files are not those of the commit: ${stdout}`);
    await sandbox.writeFile("new.txt", sandbox.id);
    await deleteSnapshot(await sandbox.snapshot());
    await sandbox.teardown();
  }
};
await Promise.all(Array.from({ length: atOnce }, work));
