import { spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const MOST_OPEN = 3;
/** The number of operations between two marks of a lane. */
const MARK_EVERY = 10;
/** How often to choose an operation that needs no open sandbox. */
const WEIGHTS = ["open", "open", "open", "crash", "reap"];

/** Random numbers from 0 to below 1, the same for the same seed. */
function createRandom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A sequence of random operations on sandboxes of its own. Its choices depend only on the seed. */
export function createLane({ seed, name, repo, glovebox, failpoints, root }) {
  const random = createRandom(seed);
  const pick = (list) => list[Math.floor(random() * list.length)];
  const open = [];
  const ids = [];
  const counts = new Map();
  const expect = (condition, message) => {
    if (!condition) throw new Error(message);
  };
  const expectCode = async (work, ...codes) => {
    const code = await work().then(
      () => "no error",
      (error) => error.code ?? String(error),
    );
    expect(codes.includes(code), `${code} instead of ${codes.join(" or ")}`);
  };
  const adopt = (sandbox) => {
    open.push(sandbox);
    ids.push(sandbox.id);
  };
  const close = async (sandbox) => {
    open.splice(open.indexOf(sandbox), 1);
    await sandbox.teardown();
  };
  const newOptions = () => ({
    backend: "local",
    ...pick([{ repo }, { repo, workspace: "overlay" }, { repo, workspace: "copy" }, {}]),
    onEvent: ({ type, message }) => {
      if (type === "leak") leaks.push(message);
    },
  });
  const leaks = [];

  const onSandbox = {
    async exec(sandbox) {
      const word = String(random());
      const { stdout, exitCode } = await sandbox.exec({ argv: ["echo", word] });
      expect(stdout === `${word}\n` && exitCode === 0, `exec returned ${exitCode} ${stdout}`);
    },
    async timeout(sandbox) {
      const { timedOut } = await sandbox.shell("setsid sleep 60 & sleep 60", { timeout: 30 });
      expect(timedOut, "the deadline was not enforced");
    },
    async abort(sandbox) {
      await expectCode(() => sandbox.exec({ argv: ["sleep", "60"], signal: AbortSignal.timeout(20) }), "aborted");
    },
    async files(sandbox) {
      const content = "x".repeat(Math.floor(random() * 100_000));
      await sandbox.writeFiles({ "soak.txt": content, "ignored/soak.txt": content });
      expect((await sandbox.readFile("soak.txt")) === content, "a file was not read as it was written");
    },
    async snapshot(sandbox) {
      await sandbox.writeFiles({ "saved.txt": sandbox.id, "ignored/saved.txt": sandbox.id });
      const id = await sandbox.snapshot();
      await sandbox.writeFile("saved.txt", "changed");
      await sandbox.restore(id);
      const found = [await sandbox.readFile("saved.txt"), await sandbox.readFile("ignored/saved.txt")];
      expect(
        found.every((text) => text === sandbox.id),
        `restored ${found}`,
      );
      await glovebox.deleteSnapshot(id);
    },
    async fork(sandbox) {
      await sandbox.writeFile("forked.txt", sandbox.id);
      const fork = await sandbox.fork();
      adopt(fork);
      expect((await fork.readFile("forked.txt")) === sandbox.id, "a fork has other files");
      if (open.length > MOST_OPEN) await close(fork);
    },
    async spawn(sandbox) {
      const daemon = await sandbox.spawn({ argv: ["sh", "-c", "while :; do sleep 1; done"] });
      await daemon.kill();
      await daemon.wait();
    },
    async teardown(sandbox) {
      await close(sandbox);
    },
    async sever(sandbox) {
      const call = expectCode(() => sandbox.exec({ argv: ["sleep", "60"] }), "backend_lost");
      killJail(sandbox);
      await call;
      await close(sandbox);
    },
  };
  const alone = {
    async open() {
      if (open.length < MOST_OPEN) adopt(await glovebox.openSandbox(newOptions()));
    },
    async crash() {
      const point = pick(failpoints);
      const fault = `${point}=${pick(["kill", "kill", "throw", "enospc"])}@${pick([1, 1, 2])}`;
      const { onEvent: _, ...options } = newOptions();
      await runVictim(options, fault);
      const { failed } = await glovebox.reap();
      expect(failed.length === 0, `after ${fault}: ${failed[0]?.error.message}`);
    },
    async reap() {
      const { failed } = await glovebox.reap(pick([{}, { cache: 0 }]));
      expect(failed.length === 0, `reap: ${failed[0]?.error.message}`);
    },
  };

  /** Kills bubblewrap, as the system does when memory runs out. */
  function killJail({ id }) {
    for (const pid of readdirSync("/proc").filter((each) => /^\d+$/.test(each))) {
      try {
        const [program] = readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0");
        if (program.endsWith("bwrap") && hasFilesOf(pid, id)) process.kill(Number(pid), "SIGKILL");
      } catch {
        // It has ended.
      }
    }
  }

  /** Whether a process sees the files of a sandbox. Its arguments don't say: a fork has the path of its origin. */
  function hasFilesOf(pid, id) {
    const mounts = readFileSync(`/proc/${pid}/mountinfo`, "utf8").split("\n");
    return mounts.some((line) => {
      const [, , , source, , ...rest] = line.split(" ");
      return `${source} ${rest.join(" ")}`.includes(id);
    });
  }

  function runVictim(options, fault) {
    const args = [
      join(root, "scripts", "soak-victim.mjs"),
      join(root, "dist", "src", "index.js"),
      JSON.stringify(options),
    ];
    const child = spawn(process.execPath, args, { env: { ...process.env, GLOVEBOX_FAILPOINTS: fault }, stdio: "pipe" });
    let said = "";
    for (const stream of [child.stdout, child.stderr])
      stream.on("data", (chunk) => (said = `${said}${chunk}`.slice(-4000)));
    return new Promise((resolve, reject) => {
      child.on("close", (code, signal) => {
        if (code === 0 || signal === "SIGKILL") resolve();
        else reject(new Error(`a process with ${fault} ended with ${code}: ${said}`));
      });
    });
  }

  const done = createHash("sha256");
  const lane = {
    operations: 0,
    ids,
    counts,
    /** Short digests of the operations so far: the same for the same seed. */
    marks: [],
    /** Does this many operations, then closes everything. */
    async run(count, isOver) {
      for (let n = 0; n < count && !isOver(); n++) {
        const sandbox = open.length > 0 && random() < 0.75 ? pick(open) : undefined;
        const operation = pick(sandbox === undefined ? WEIGHTS : Object.keys(onSandbox));
        lane.operations += 1;
        counts.set(operation, (counts.get(operation) ?? 0) + 1);
        done.update(`${operation} ${sandbox === undefined ? "" : open.indexOf(sandbox)}\n`);
        if (lane.operations % MARK_EVERY === 0) lane.marks.push(done.copy().digest("hex").slice(0, 6));
        try {
          await (sandbox === undefined ? alone[operation]() : onSandbox[operation](sandbox));
          expect(leaks.length === 0, `teardown left something: ${leaks.join()}`);
        } catch (error) {
          throw new Error(`${name}, operation ${lane.operations}, ${operation}: ${error.message}`, { cause: error });
        }
      }
      await lane.close();
    },
    async close() {
      while (open.length > 0) await close(open[0]);
    },
  };
  return lane;
}
