// Opens a sandbox in a cluster with a process in it, says its id, and waits to be killed.
const [, , directory, text] = process.argv;
const { createKubernetesSandbox } = await import(`${directory}/src/sandbox/kubernetes.js`);

const sandbox = await createKubernetesSandbox(JSON.parse(text));
await sandbox.spawn({ argv: ["sleep", "600"] });
console.log(sandbox.id);
setInterval(() => {}, 1_000);
