import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { setTimeout as delay } from "node:timers/promises";
import { membersOf } from "./groups.mjs";

/**
 * What a test may do to a cluster, by requests to a socket: `GET /programs`; `POST /kill`, `/start`, `/pause` and `/resume` of a program;
 * `POST /path` to set how the way to the API server behaves; `POST /run` of a command in a node; `POST /kill-node`; `POST /import` of an image.
 */
export function serveControl(path, { programs, front, nodes, import: importImage }) {
  const nodeOf = (name) => {
    const node = nodes.find((each) => each.name === name);
    if (node === undefined) throw new Error(`there is no node ${name}: ${nodes.map((each) => each.name).join(", ")}`);
    return node;
  };
  const acts = {
    "GET /programs": () => programs.list().map(({ name, child }) => ({ name, pid: child.pid, ...stateOf(child.pid) })),
    "POST /kill": ({ name }) => programs.kill(name),
    "POST /start": ({ name }) => void programs.restart(name),
    "POST /pause": ({ name }) => void programs.find(name).child.kill("SIGSTOP"),
    "POST /resume": ({ name }) => void programs.find(name).child.kill("SIGCONT"),
    "POST /path": ({ mode }) => {
      front.mode = mode;
    },
    "POST /run": ({ node, argv }) => programs.runIn(nodeOf(node), argv),
    "POST /kill-node": ({ node }) => killNode(nodeOf(node), programs),
    "POST /import": ({ name, archive, config }) => importImage(name, archive, config),
  };
  const server = createServer((request, response) => {
    void answer(request)
      .catch((error) => ({ status: 500, value: { error: error.message } }))
      .then(({ status, value }) => {
        response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value ?? {}));
      });
  });
  async function answer(request) {
    const act = acts[`${request.method} ${request.url}`];
    if (act === undefined) return { status: 404, value: { error: `known: ${Object.keys(acts).join(", ")}` } };
    let text = "";
    for await (const piece of request.setEncoding("utf8")) text += piece;
    return { status: 200, value: await act(text === "" ? {} : JSON.parse(text)) };
  }
  return new Promise((resolve) => server.listen(path, resolve));
}

/** Kills every process of a node, as when its machine loses power. */
async function killNode(node, programs) {
  for (const program of programs.list())
    if (program.node === node || program.name === node.name) program.isStopping = true;
  for (;;) {
    const members = new Set(node.groups.flatMap(membersOf));
    if (members.size === 0) return;
    for (const pid of members) {
      try {
        process.kill(pid, "SIGKILL");
      } catch {
        // It has ended.
      }
    }
    await delay(20);
  }
}

function stateOf(pid) {
  try {
    const text = readFileSync(`/proc/${pid}/status`, "utf8");
    return { state: /^State:\s+(\w)/m.exec(text)?.[1], kib: Number(/^VmRSS:\s+(\d+)/m.exec(text)?.[1] ?? 0) };
  } catch {
    return { state: "gone", kib: 0 };
  }
}
