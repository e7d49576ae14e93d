import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { start } from "./processes.mjs";

const require = createRequire(new URL("../peers/package.json", import.meta.url));

/** Other libraries that run commands on this machine, each ready to run `true`. One that can't is reported and left out. */
export async function openPeers(directory) {
  const opened = [];
  const notes = [];
  for (const [name, open] of Object.entries({ "sandbox-runtime": openSandboxRuntime, "OpenAI Agents": openAgents })) {
    try {
      opened.push({ name: `${name}, true`, ...(await open(directory)) });
    } catch (error) {
      notes.push(`not measured: ${name}: ${error.message.split("\n")[0]}`);
    }
  }
  return { peers: opened, notes };
}

/** Confines with a new bubblewrap for each command. Needs ripgrep and socat. */
async function openSandboxRuntime(directory) {
  const { SandboxManager } = await load("@anthropic-ai/sandbox-runtime");
  await SandboxManager.initialize({
    network: { allowedDomains: [], deniedDomains: [] },
    filesystem: { denyRead: [], allowWrite: [directory], denyWrite: [] },
  });
  const exec = async () => {
    const command = await SandboxManager.wrapWithSandbox("/bin/true");
    await start("/bin/sh", ["-c", command], { cwd: directory });
  };
  await exec();
  return { exec, close: () => SandboxManager.reset() };
}

/** Not confined on Linux: shows the cost without confinement. */
async function openAgents(directory) {
  const { UnixLocalSandboxClient } = await load("@openai/agents-core/sandbox/local");
  const client = new UnixLocalSandboxClient({ workspaceBaseDir: directory });
  const session = await client.create({});
  const exec = async () => {
    const { exitCode } = await session.exec({ cmd: "/bin/true" });
    if (exitCode !== 0) throw new Error(`it ended with ${exitCode}`);
  };
  await exec();
  return { exec, close: () => session.close() };
}

/** The usual client of a Docker engine: runs one command, copies the files of a folder. */
export async function openDockerode(host, container) {
  const { default: Docker } = await load("dockerode");
  const docker = new Docker({ socketPath: host.slice("unix://".length) });
  const peer = docker.getContainer(container);
  const exec = async () => {
    const command = await peer.exec({ Cmd: ["true"], AttachStdout: true, AttachStderr: true });
    const stream = await command.start({ hijack: true });
    stream.resume();
    await new Promise((resolve, reject) => stream.once("close", resolve).once("error", reject));
    const { ExitCode } = await command.inspect();
    if (ExitCode !== 0) throw new Error(`it ended with ${ExitCode}`);
  };
  await exec();
  return { exec, putArchive: (archive, path) => peer.putArchive(archive, { path }) };
}

async function load(name) {
  return await import(pathToFileURL(require.resolve(name)).href);
}
