import { strict as assert } from "node:assert";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getSandboxExecutor, SandboxError } from "glovebox";

/** A tool call as a model writes it. */
interface ToolCall {
  name: string;
  input: Record<string, unknown>;
}

const home = process.cwd();
const project = await mkdtemp(join(tmpdir(), "glovebox-chat-"));
process.chdir(project);

// #region tools
const executor = getSandboxExecutor({ allow: ["cat", "ls", "node", "sort", "wc"], timeout: 5_000 });

const tools: Readonly<Record<string, (input: ToolCall["input"]) => Promise<unknown>>> = {
  run: ({ command, args }) => executor.execute(String(command), args as string[]),
  write_file: async ({ path, content }) => {
    await executor.writeFile(String(path), String(content));
    return "written";
  },
  read_file: async ({ path }) => (await executor.readFile(String(path))) ?? "there is no such file",
  list_files: () => executor.listFiles(),
};

/** Runs one tool call. Errors go back to the model, which may try something else. */
async function call({ name, input }: ToolCall): Promise<{ content: string; isError: boolean }> {
  try {
    const tool = tools[name];
    if (!tool) return { content: `there is no tool ${name}`, isError: true };
    return { content: JSON.stringify(await tool(input)), isError: false };
  } catch (error) {
    if (!(error instanceof SandboxError)) throw error;
    return { content: `${error.code}: ${error.message}`, isError: true };
  }
}
// #endregion tools

try {
  const words = "pear\napple\nfig\n";
  const hangs = { command: "node", args: ["-e", "setInterval(() => {}, 1000)"] };
  const conversation: [ToolCall, RegExp][] = [
    [{ name: "write_file", input: { path: "words.txt", content: words } }, /^"written"$/],
    [{ name: "run", input: { command: "sort", args: ["words.txt"] } }, /"stdout":"apple\\nfig\\npear\\n"/],
    [{ name: "run", input: { command: "cat", args: ["missing; rm -rf ."] } }, /"exitCode":1/],
    [{ name: "list_files", input: {} }, /^\["words.txt"\]$/],
    [{ name: "read_file", input: { path: "missing" } }, /no such file/],
    [{ name: "run", input: hangs }, /"exitCode":124/],
    [{ name: "run", input: { command: "sh", args: ["-c", "id"] } }, /^command_not_allowed: /],
    [{ name: "read_file", input: { path: "../../etc/passwd" } }, /^path_confinement: /],
    [{ name: "send_mail", input: {} }, /^there is no tool/],
  ];
  for (const [asked, expected] of conversation) {
    const { content, isError } = await call(asked);
    console.log(`${isError ? "error" : "ok   "} ${asked.name} ${JSON.stringify(asked.input)}: ${content.trim()}`);
    assert.match(content, expected);
  }
  await executor.cleanup();
  assert.deepEqual(await executor.listFiles(), [], "cleanup throws everything away, and the executor can go on");
  await executor.cleanup();
} finally {
  process.chdir(home);
  await rm(project, { recursive: true, force: true });
}
