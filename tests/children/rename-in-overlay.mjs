// Renames a checked-out directory inside an overlay and tells what came of it: `rename-in-overlay.mjs <library> <repository>`.
const [library, repo] = process.argv.slice(2);
const { openSandbox } = await import(library);
const told = {};
try {
  const sandbox = await openSandbox({ backend: "local", repo, workspace: "overlay" });
  const rename = "require('fs').renameSync('sub', 'moved')";
  const direct = await sandbox.exec({ argv: [process.execPath, "-e", rename] });
  const moved = direct.exitCode === 0 || (await sandbox.exec({ argv: ["mv", "sub", "moved"] })).exitCode === 0;
  told.renames = sandbox.capabilities.renames;
  told.error = /\bE[A-Z]+\b/.exec(direct.stderr)?.[0] ?? "";
  told.content = moved ? await sandbox.readFile("moved/b.txt") : null;
  await sandbox.teardown();
  const other = await openSandbox({ backend: "local", repo, workspace: "overlay" });
  await other.rename("sub", "new/moved");
  told.byCall = [await other.exists("sub"), await other.readFile("new/moved/b.txt")];
  await other.teardown();
} catch (error) {
  told.code = error.code ?? String(error);
  told.message = error.message;
}
console.log(JSON.stringify(told));
