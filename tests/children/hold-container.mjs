// Opens a sandbox in a container with stubborn processes in it, says what it is, and waits to be ended.
const [, , directory, text] = process.argv;
const { createDockerSandbox } = await import(`${directory}/src/sandbox/docker.js`);

const { options, snapshot } = JSON.parse(text);
const sandbox = await createDockerSandbox(options);
const stubborn = "trap '' TERM HUP INT; while :; do sleep 1; done";
for (const script of [stubborn, `setsid sh -c "${stubborn}" & wait`, `(setsid sh -c "${stubborn}" &) & ${stubborn}`]) {
  const daemon = await sandbox.spawn({ argv: ["sh", "-c", script] });
  daemon.wait().catch(() => {});
}
await sandbox.writeFile("file", "kept");
const saved = snapshot === true ? await sandbox.snapshot() : undefined;
console.log(JSON.stringify({ id: sandbox.id, snapshot: saved }));
setInterval(() => {}, 1_000);
