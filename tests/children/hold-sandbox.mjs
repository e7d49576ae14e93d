// Opens a sandbox with daemons in it, says what it is, and waits to be ended; or, when told to keep it, ends by itself.
const [, , directory, text, marker] = process.argv;
const { createLocalSandbox } = await import(`${directory}/src/sandbox/local.js`);

const options = JSON.parse(text);
const sandbox = await createLocalSandbox(options);
const stubborn = "trap '' TERM HUP INT; while :; do sleep 1; done";
const scripts = [
  stubborn,
  `setsid sh -c "${stubborn}" ${marker}-session & wait`,
  `(setsid sh -c "${stubborn}" ${marker}-orphan &) & ${stubborn}`,
];
for (const script of scripts) {
  const daemon = await sandbox.spawn({ argv: ["sh", "-c", script, marker] });
  daemon.wait().catch(() => {});
}
console.log(JSON.stringify({ id: sandbox.id, workDir: sandbox.workDir }));
if (options.keep === true) await sandbox.teardown();
else setInterval(() => {}, 1_000);
