import { spawn } from "node:child_process";
import { rmSync } from "node:fs";
import { mkdtemp, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Things on the host that the inside must not get at. */
export interface HostBait extends AsyncDisposable {
  /** A file that every user of the host may read. */
  file: string;
  /** A directory that every user of the host may write to. */
  directory: string;
  /** What the file, the environment and a command line hold. */
  secret: string;
  /** A server on the host's loopback. */
  port: number;
  /** How many connections the server got. */
  connections(): number;
}

/** Lays out a file, an environment variable, a process and a server, all holding or guarding one secret. */
export async function layBait(): Promise<HostBait> {
  const secret = `bait-${process.pid}-${Date.now()}`;
  const directory = await mkdtemp(join(tmpdir(), "glovebox-demo-"));
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, "secret.txt");
  await writeFile(file, secret, { mode: 0o644 });
  process.env["DEMO_API_KEY"] = secret;
  const sleeper = spawn("sh", ["-c", "read line", secret], { stdio: ["pipe", "ignore", "ignore"] });
  let connections = 0;
  const server = createServer((socket) => {
    connections += 1;
    socket.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  return {
    file,
    directory,
    secret,
    port: typeof address === "object" && address ? address.port : 0,
    connections: () => connections,
    async [Symbol.asyncDispose]() {
      delete process.env["DEMO_API_KEY"];
      sleeper.kill("SIGKILL");
      server.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Command lines of the host's processes that hold a word; those inside a sandbox are the host's processes too. */
export async function processesWith(word: string): Promise<string[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name));
  const lines = await Promise.all(pids.map((pid) => readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")));
  return lines.map((line) => line.replaceAll("\0", " ").trim()).filter((line) => line.includes(word));
}
