import { spawn } from "node:child_process";
import { closeSync, mkdirSync, openSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { lastWords } from "../last-words.mjs";
import { enterGroups } from "./groups.mjs";

/** How often programs may end unasked before the cluster is given up. */
const MOST_LOST = 5;

/**
 * The processes of a cluster by name. One that ends unasked is started again, as a system does with its services; `onLost` gets its last words, and
 * whether that was once too often.
 */
export function createPrograms({ folder, built, onLost }) {
  const all = new Map();
  const logs = join(folder, "log");
  const temporary = join(folder, "tmp");
  for (const each of [logs, temporary]) mkdirSync(each, { recursive: true });
  // Some leave PATH to those that they start.
  const env = { PATH: `${join(built, "bin")}:${process.env.PATH}`, HOME: folder, TMPDIR: temporary, LANG: "C" };
  let lost = 0;

  function start(name, argv, { node, isOnce = false } = {}) {
    const file = join(logs, `${name}.log`);
    const log = openSync(file, "a");
    const [command, ...args] = [...into(node), ...argv];
    const child = spawn(command, args, { cwd: folder, env, stdio: ["ignore", log, log] });
    closeSync(log);
    const program = { name, argv, node, child, isStopping: false };
    program.ended = new Promise((resolve) => child.once("exit", resolve));
    child.once("error", (error) => onLost(`${name}: ${error.message}`, true));
    child.once("exit", (code, signal) => {
      if (program.isStopping) return;
      lost += 1;
      const isOver = isOnce || lost > MOST_LOST;
      onLost(`${name} ended with ${signal ?? code}:\n${lastWords(readFileSync(file, "utf8"))}`, isOver);
      if (!isOver) start(name, argv, { node });
    });
    all.set(name, program);
    return program;
  }

  async function kill(name) {
    const program = find(name);
    program.isStopping = true;
    program.child.kill("SIGKILL");
    await program.ended;
  }

  function restart(name) {
    const { argv, node } = find(name);
    return start(name, argv, { node });
  }

  function find(name) {
    const program = all.get(name);
    if (program === undefined) throw new Error(`there is no program ${name}: ${[...all.keys()].join(", ")}`);
    return program;
  }

  /** Runs a command to its end in the namespaces of a node. */
  function runIn(node, argv) {
    const [command, ...args] = [...into(node), ...argv];
    const child = spawn(command, args, { env, stdio: ["ignore", "pipe", "pipe"] });
    const result = { stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"]) {
      child[name].setEncoding("utf8").on("data", (text) => {
        result[name] += text;
      });
    }
    return new Promise((resolve, reject) => {
      child.once("error", reject);
      child.once("close", (code) => resolve({ code, ...result }));
    });
  }

  return { start, kill, restart, find, runIn, list: () => [...all.values()] };
}

/** What starts a command in the groups and namespaces of a node. */
function into(node) {
  if (node === undefined) return [];
  return ["sh", "-c", `${enterGroups(node.groups)} && exec nsenter -t ${node.holder} -m -n -u -i -C -- "$@"`, "into"];
}
