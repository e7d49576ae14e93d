// Opens a sandbox in a worker thread, which then ends, and waits to be ended itself.
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";

if (isMainThread) {
  const [, , directory, text, marker] = process.argv;
  const worker = new Worker(new URL(import.meta.url), { workerData: { directory, options: JSON.parse(text), marker } });
  worker.on("message", (message) => console.log(message));
  worker.on("exit", () => console.log("ended"));
  process.stdin.resume();
  setInterval(() => {}, 1_000);
} else {
  const { directory, options, marker } = workerData;
  const { createLocalSandbox } = await import(`${directory}/src/sandbox/local.js`);
  const sandbox = await createLocalSandbox(options);
  await sandbox.spawn({ argv: ["sh", "-c", "while :; do sleep 1; done", marker] });
  parentPort.postMessage("open");
  process.exit();
}
