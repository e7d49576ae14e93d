// Opens a local sandbox with the given options, runs a script in it, says its id or what was refused, and waits to be ended.
const [, , directory, text, script = "true"] = process.argv;
const { createLocalSandbox } = await import(`${directory}/src/sandbox/local.js`);
try {
  const sandbox = await createLocalSandbox(JSON.parse(text));
  await sandbox.shell(script);
  console.log(JSON.stringify({ id: sandbox.id }));
  setInterval(() => {}, 1_000);
} catch ({ code, message }) {
  console.log(JSON.stringify({ code, message }));
}
