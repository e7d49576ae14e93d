import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

/** Running process groups that `run` started. */
const groups = new Set();
let stopping = false;

/**
 * Runs a program in its own process group and waits for its end. Output goes to the screen, or is collected if `quiet`.
 * `onLine` gets each line of standard output first and can suppress it by returning false.
 */
export function run(command, args, { cwd, env, quiet = false, uid, gid, onLine } = {}) {
  return new Promise((resolve, reject) => {
    // After an interrupt start nothing, and never resolve.
    if (stopping) return;
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
      if (!stopping) resolve({ code: code ?? 1, signal, output });
    });
  });
}

/** Runs npm, with the same Node and npm that started this script if known. */
export function npm(args, options) {
  const cli = process.env.npm_execpath;
  return cli?.endsWith(".js") ? run(process.execPath, [cli, ...args], options) : run("npm", args, options);
}

/**
 * Makes an interrupt end everything that `run` started, then call `clean`, then end this process. Kills what has not ended
 * after `grace` milliseconds; a script that runs such a script needs a longer grace.
 */
export function endAllOnInterrupt(clean = () => {}, grace = 3_000) {
  const stop = (signal, code) => {
    if (stopping) return;
    stopping = true;
    console.log(`\nstopped by ${signal}`);
    signalGroups("SIGTERM");
    const startedAt = performance.now();
    setInterval(() => {
      if (groups.size > 0 && performance.now() - startedAt < grace) return;
      signalGroups("SIGKILL");
      clean();
      process.exit(code);
    }, 20);
  };
  process.on("SIGINT", () => stop("SIGINT", 130));
  process.on("SIGTERM", () => stop("SIGTERM", 143));
  process.on("SIGHUP", () => stop("SIGHUP", 129));
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
