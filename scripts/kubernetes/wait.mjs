import { request } from "node:https";
import { setTimeout as delay } from "node:timers/promises";

/** What a start may take on a busy machine. */
const LIMIT = 300_000;

/** Asks until the answer is true; an error is an answer, too, and is shown when there is never another one. */
export async function whenTrue(what, ask, every = 100) {
  const end = performance.now() + LIMIT;
  for (let last; ; await delay(every)) {
    try {
      if (await ask()) return;
    } catch (error) {
      last = error;
    }
    if (performance.now() > end) throw new Error(`waited in vain for ${what}${last ? `: ${last.message}` : ""}`);
  }
}

/** One call to the API server from inside the cluster's network. */
export function callServer({ token, ca }, path) {
  const options = { host: "127.0.0.1", port: 6443, path, ca, agent: false, timeout: 10_000 };
  return new Promise((resolve, reject) => {
    const call = request({ ...options, headers: { authorization: `Bearer ${token}` } }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (piece) => {
        text += piece;
      });
      answer.on("error", reject);
      answer.on("end", () =>
        resolve({ status: answer.statusCode, body: text.startsWith("{") ? JSON.parse(text) : text }),
      );
    });
    call.on("timeout", () => call.destroy(new Error(`${path}: no answer`)));
    call.on("error", reject);
    call.end();
  });
}
