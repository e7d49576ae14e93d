import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** Process groups that were started and have not ended. */
const groups = new Set();
let stopping = false;

/**
 * Runs a program in a process group of its own and waits for its end. Output goes to the screen, or is collected when
 * `quiet`. `onLine` sees each line of standard output first and may hold it back by returning false.
 */
export function run(command, args, { cwd, env, quiet = false, uid, gid, onLine } = {}) {
  return new Promise((resolve, reject) => {
    const mode = quiet || onLine ? "pipe" : "inherit";
    const child = spawn(command, args, {
      cwd,
      env: env ?? process.env,
      detached: true,
      stdio: ["ignore", mode, quiet ? "pipe" : "inherit"],
      ...(uid === undefined ? {} : { uid, gid }),
    });
    let output = "";
    if (child.pid !== undefined) groups.add(child.pid);
    if (quiet) {
      for (const stream of [child.stdout, child.stderr]) {
        stream.setEncoding("utf8").on("data", (text) => {
          output = (output + text).slice(-100_000);
        });
      }
    } else if (onLine) {
      createInterface({ input: child.stdout }).on("line", (line) => {
        if (onLine(line) !== false) console.log(line);
      });
    }
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (child.pid !== undefined) groups.delete(child.pid);
      resolve({ code: code ?? 1, signal, output });
    });
  });
}

/** Runs npm, by the same Node and the same npm that started this script where that is known. */
export function npm(args, options) {
  const cli = process.env.npm_execpath;
  return cli?.endsWith(".js") ? run(process.execPath, [cli, ...args], options) : run("npm", args, options);
}

/** Makes an interrupt end everything that `run` started, then this process. `clean` runs in between. */
export function endAllOnInterrupt(clean = () => {}) {
  const stop = (signal, code) => {
    if (stopping) return;
    stopping = true;
    signalGroups("SIGTERM");
    setTimeout(() => {
      signalGroups("SIGKILL");
      clean();
      process.exit(code);
    }, 500);
    console.log(`\nstopped by ${signal}`);
  };
  process.on("SIGINT", () => stop("SIGINT", 130));
  process.on("SIGTERM", () => stop("SIGTERM", 143));
  process.on("SIGHUP", () => stop("SIGHUP", 129));
}

/** Whether an interrupt is being handled, so that what fails now is not worth a word. */
export function isStopping() {
  return stopping;
}

function signalGroups(signal) {
  for (const group of groups) {
    try {
      process.kill(-group, signal);
    } catch {
      // It has ended.
    }
  }
}
