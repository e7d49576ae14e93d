import { createReadStream, statSync } from "node:fs";
import { request } from "node:http";
import { ensureArchive } from "./image-cache.mjs";

export { BUSYBOX, DEBIAN, FAILED_IMAGES, whyNoImage } from "./image-cache.mjs";

/** Gives an image to an engine that doesn't have it. Builds it first if `npm test` hasn't done so; `onProgress` gets each phase. */
export async function ensureImage(host, name, onProgress) {
  const socketPath = host.slice("unix://".length);
  if ((await call(socketPath, "GET", `/images/${name}/json`)).status === 200) return;
  const archive = await ensureArchive(name, onProgress);
  const [repo, tag] = name.split(":");
  const path = `/images/create?fromSrc=-&repo=${encodeURIComponent(repo)}&tag=${tag}`;
  const { status, text } = await call(socketPath, "POST", path, createReadStream(archive), statSync(archive).size);
  if (status !== 200 || text.includes('"error"')) throw new Error(`${name} could not be imported: ${text.slice(-500)}`);
}

function call(socketPath, method, path, body, length) {
  return new Promise((resolve, reject) => {
    const headers = body ? { "Content-Type": "application/x-tar", "Content-Length": length } : {};
    const sent = request({ socketPath, method, path, headers }, (answer) => {
      let text = "";
      answer.setEncoding("utf8");
      answer.on("data", (piece) => {
        text = (text + piece).slice(-10_000);
      });
      answer.on("end", () => resolve({ status: answer.statusCode, text }));
      answer.on("error", reject);
    });
    sent.on("error", reject);
    if (body) body.pipe(sent);
    else sent.end();
  });
}
