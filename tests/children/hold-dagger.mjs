// Opens a sandbox by a dagger program, says what came of it, and waits to be ended.
const [, , directory, text] = process.argv;
const { createDaggerSandbox } = await import(`${directory}/src/sandbox/dagger.js`);

try {
  const sandbox = await createDaggerSandbox(JSON.parse(text));
  await sandbox.spawn({ argv: ["sleep", "600"] });
  console.log(JSON.stringify({ id: sandbox.id }));
  setInterval(() => {}, 1_000);
} catch (error) {
  console.log(JSON.stringify({ code: error.code, message: error.message, hint: error.hint }));
  // Whatever is thrown from a promise that nobody holds ends the process before this.
  setTimeout(() => console.log("still here"), 300);
}
