// Opens a sandbox, copies programs into it, runs scripts in it and takes it away. Prints what came of it as JSON.
import { readFileSync } from "node:fs";

const [, , directory, job] = process.argv;
const { options, programs = {}, scripts = [] } = JSON.parse(job);
const { createLocalSandbox } = await import(`${directory}/src/sandbox/local.js`);

const sandbox = await createLocalSandbox(options ?? {}).catch((error) => {
  console.log(`${error.code}: ${error.message} (${error.hint})`);
  process.exit(1);
});
try {
  for (const [name, path] of Object.entries(programs)) {
    await sandbox.writeFile(name, readFileSync(path), { mode: 0o755 });
  }
  const results = [];
  for (const script of scripts) {
    const { exitCode, stdout, stderr } = await sandbox.shell(script, { timeout: 30_000 });
    results.push({ exitCode, stdout, stderr });
  }
  console.log(JSON.stringify({ id: sandbox.id, workDir: sandbox.workDir, results }));
} finally {
  await sandbox.teardown();
}
