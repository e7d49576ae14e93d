import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { openContext } from "../../src/sandbox/backends/docker/image/build-context.js";
import { parseTaskFile, type TaskFile, type TaskFileOptions } from "../../src/tasks/task-file.js";
import { schemaFault } from "../support/json-schema.js";
import { expectRefused } from "../support/refused.js";
import { createScratch, type Scratch } from "../support/scratch.js";

const schema = JSON.parse(
  readFileSync(new URL("../../schemas/task-file.schema.json", import.meta.url), "utf8"),
) as Record<string, unknown>;
const pull = { type: "pull", tag: "busybox:1.35" };
const agent = { name: "agent", spec: { imageSpec: pull } };
const task = { taskId: "one", agentContainer: agent };
const stage = { tag: "a:1", contextPath: "a", cacheKey: "v1" };

const file = (more: object): unknown => ({ tasks: [{ ...task, ...more }] });
const spec = (more: object): unknown => file({ agentContainer: { name: "agent", spec: { imageSpec: pull, ...more } } });
const image = (imageSpec: unknown): unknown => file({ agentContainer: { name: "agent", spec: { imageSpec } } });

const GOOD: Readonly<Record<string, unknown>> = {
  "the least": { tasks: [task] },
  "everything above the tasks": { $schema: "x", networkEnabled: true, batchIdPrefix: "mine", tasks: [task] },
  "a command of its own": file({ run: ["true"], timeout: 1000 }),
  "a script": file({ run: "echo $GREETING" }),
  "a service": file({ serviceContainers: { db: { name: "postgres", spec: { imageSpec: pull, hostname: "db" } } } }),
  "a network": file({ networkConfig: { name: "task-net", internal: true } }),
  "everything of a container": spec({
    hostname: "box",
    environment: { A: "1" },
    command: ["sleep", "9"],
    user: "1000:1000",
    limits: { memory: 1024, cpus: 0.5, pids: 10 },
    waitFor: { port: 80, log: "ready", command: "true", health: true, timeout: 5 },
  }),
  "an image to build": image({
    type: "build",
    tag: "x:1",
    contextPath: ".",
    dockerfilePath: "a/D",
    buildArgs: { A: "b" },
  }),
  "a chain": image({
    type: "multi-stage",
    stages: [stage, { tag: "b:1", contextPath: "b", parentTag: "a:1" }],
    finalTag: "b:1",
  }),
  "an image of a registry with a port": image({ type: "pull", tag: "127.0.0.1:5000/a/b_c:1.0" }),
  "an image alone": { tasks: [{ taskId: "one", image: "busybox" }] },
  "a timeout with its unit": file({ timeout: "90s" }),
  "a wait with its unit": spec({ waitFor: { port: 80, timeout: "1.5m" } }),
  "an image by its digest": image({ type: "pull", tag: `a@sha256:${"0".repeat(64)}` }),
};

const BAD: Readonly<Record<string, unknown>> = {
  "no object": [],
  "no tasks": { tasks: [] },
  "an unknown key": { tasks: [task], tsks: 1 },
  "a network that is neither": { networkEnabled: "yes", tasks: [task] },
  "a prefix that is a path": { batchIdPrefix: "../x", tasks: [task] },
  "a task without an id": { tasks: [{ agentContainer: agent }] },
  "a task without an agent": { tasks: [{ taskId: "one" }] },
  "a task with an unknown key": file({ services: {} }),
  "an empty id": file({ taskId: "" }),
  "a command that is empty": file({ run: [] }),
  "a command of numbers": file({ run: ["sleep", 9] }),
  "a timeout without a unit": file({ timeout: "9" }),
  "an image that is none": { tasks: [{ taskId: "one", image: "-x" }] },
  "a container without a spec": file({ agentContainer: { name: "agent" } }),
  "a container whose name climbs": file({ agentContainer: { ...agent, name: "a..b" } }),
  "a container whose name is a path": file({ agentContainer: { ...agent, name: "../a" } }),
  "a service whose key is a path": file({ serviceContainers: { "../db": { name: "db", spec: agent.spec } } }),
  "a list of services": file({ serviceContainers: [agent] }),
  "a network without a name": file({ networkConfig: { internal: true } }),
  "no image": file({ agentContainer: { name: "agent", spec: {} } }),
  "an image of no kind": image({ type: "fetch", tag: "a" }),
  "an image without a tag": image({ type: "pull" }),
  "an image with a blank": image({ type: "pull", tag: "a b" }),
  "an image with a dash in front": image({ type: "pull", tag: "-a" }),
  "a pull with a context": image({ type: "pull", tag: "a", contextPath: "." }),
  "a build without a context": image({ type: "build", tag: "a" }),
  "a build with wrong arguments": image({ type: "build", tag: "a", contextPath: ".", buildArgs: { A: 1 } }),
  "a chain without stages": image({ type: "multi-stage", stages: [], finalTag: "a" }),
  "a stage without a tag": image({ type: "multi-stage", stages: [{ contextPath: "." }], finalTag: "a" }),
  "a stage with an unknown key": image({ type: "multi-stage", stages: [{ ...stage, parent: "x" }], finalTag: "a:1" }),
  "a host name in capitals": spec({ hostname: "DB" }),
  "a host name with an underscore": spec({ hostname: "my_db" }),
  "a variable with a dash": spec({ environment: { "A-B": "1" } }),
  "a variable that is a number": spec({ environment: { A: 1 } }),
  "a user with a blank": spec({ user: "a b" }),
  "a limit of the disk": spec({ limits: { disk: 1 } }),
  "no memory": spec({ limits: { memory: 0 } }),
  "nothing to wait for": spec({ waitFor: { timeout: 5 } }),
  "a wait without a unit": spec({ waitFor: { port: 80, timeout: "5" } }),
  "a port that is none": spec({ waitFor: { port: 70_000 } }),
  "a health that is false": spec({ waitFor: { health: false } }),
};

describe("a task file", () => {
  test.each(Object.entries(GOOD))("with %s is read, and fits its schema", async (_, value) => {
    await expect(parseTaskFile(JSON.stringify(value), "tasks.yaml")).resolves.toHaveProperty("tasks");
    expect(schemaFault(value, schema)).toBeUndefined();
  });

  test.each(Object.entries(BAD))("with %s is refused, also by its schema", async (_, value) => {
    await expect(parseTaskFile(JSON.stringify(value), "tasks.yaml")).rejects.toMatchObject({ name: "SandboxError" });
    expect(schemaFault(value, schema)).toBeTypeOf("string");
  });

  test("is YAML, and its paths are relative to it", async () => {
    const { tasks, networkEnabled } = await parseTaskFile(
      [
        "networkEnabled: true",
        "tasks:",
        "  - taskId: one",
        "    run: echo hello",
        "    agentContainer:",
        "      name: agent",
        "      spec:",
        "        imageSpec: { type: build, tag: mine, contextPath: ./images/mine }",
      ].join("\n"),
      "/somewhere/tasks.yaml",
    );
    expect(networkEnabled).toBe(true);
    expect(tasks[0]?.run).toBe("echo hello");
    expect(tasks[0]?.setup.agentContainer.spec.imageSpec).toMatchObject({ contextPath: "/somewhere/images/mine" });
  });

  test("needs no more than an image for a container, and a time may have its unit", async () => {
    const { tasks } = await parseTaskFile("tasks:\n  - { taskId: one, image: busybox, timeout: 1.5m }", "tasks.yaml");
    expect(tasks[0]?.setup.agentContainer).toEqual({
      name: "agent",
      spec: { imageSpec: { type: "pull", tag: "busybox" } },
    });
    expect(tasks[0]?.timeout).toBe(90_000);
    const [waiting] = (await parseTaskFile(JSON.stringify(GOOD["a wait with its unit"]), "tasks.yaml")).tasks;
    expect(waiting?.setup.agentContainer.spec.waitFor).toEqual({ port: 80, timeout: 90_000 });
    await expectRefused(
      parseTaskFile("tasks:\n  - { taskId: one }", "tasks.yaml"),
      "invalid_argument",
      "tasks[0] has no image",
    );
    await expectRefused(
      parseTaskFile(JSON.stringify(file({ image: "busybox" })), "tasks.yaml"),
      "invalid_argument",
      "tasks[0] has image and agentContainer",
    );
  });

  test.each([
    ["broken YAML, with its place", "tasks:\n  - a: [", "invalid_argument", "at line 2"],
    ["a key twice", "tasks: []\ntasks: []", "invalid_argument", "unique"],
    ["a flood of aliases", `a: &a [1,1,1,1,1,1,1,1,1,1]\n${bomb()}`, "limit_exceeded", "aliases"],
    ["one id for two tasks", JSON.stringify({ tasks: [task, task] }), "invalid_argument", "tasks[1].taskId"],
    [
      "a final tag that no stage has",
      JSON.stringify(image({ type: "multi-stage", stages: [stage], finalTag: "z" })),
      "invalid_argument",
      '"z" is the tag of no stage',
    ],
    [
      "a Dockerfile outside",
      JSON.stringify(image({ type: "build", tag: "a", contextPath: ".", dockerfilePath: "../D" })),
      "path_confinement",
      "../D",
    ],
    [
      "an open network without leave",
      JSON.stringify(file({ networkConfig: { name: "n", internal: false } })),
      "invalid_argument",
      "internal",
    ],
    [
      "a service named like the agent",
      JSON.stringify(file({ serviceContainers: { db: agent } })),
      "invalid_argument",
      '"agent" is given twice',
    ],
    [
      "a host name twice",
      JSON.stringify(
        file({
          serviceContainers: {
            a: { name: "a", spec: { imageSpec: pull, hostname: "db" } },
            b: { name: "b", spec: { imageSpec: pull, hostname: "db" } },
          },
        }),
      ),
      "invalid_argument",
      'hostname "db" is given twice',
    ],
    ["an id that climbs", JSON.stringify(file({ taskId: "../../etc" })), "invalid_argument", "taskId"],
  ])("with %s is refused", async (_, text, code, words) => {
    await expectRefused(parseTaskFile(text, "tasks.yaml"), code, "tasks.yaml", words);
  });
});

describe("a file of tasks in a repository", () => {
  let scratch: Scratch;
  let outside: string;
  beforeEach(() => {
    scratch = createScratch();
    outside = join(scratch.path, "outside");
    mkdirSync(join(scratch.path, "repo", ".git"), { recursive: true });
    mkdirSync(join(scratch.path, "repo", "evals", "image"), { recursive: true });
    mkdirSync(outside);
    symlinkSync(outside, join(scratch.path, "repo", "evals", "link"));
  });
  afterEach(() => scratch.remove());

  const parse = (contextPath: string, folder = "repo/evals", opts: TaskFileOptions = {}): Promise<TaskFile> =>
    parseTaskFile(
      JSON.stringify(image({ type: "build", tag: "a", contextPath })),
      join(scratch.path, folder, "tasks.json"),
      opts,
    );

  test.each(["../../outside", "link", "/etc"])("does not build from %s without trust", async (contextPath) => {
    await expectRefused(parse(contextPath), "permission_denied", `outside ${join(scratch.path, "repo")}`);
    await expect(parse(contextPath, "repo/evals", { trust: true })).resolves.toHaveProperty("tasks");
    // A file of the user's own, in no repository, says what the user says.
    await expect(parse(contextPath, "outside")).resolves.toHaveProperty("tasks");
  });

  test("does not build from elsewhere either where a link in the repository leads to the file", async () => {
    writeFileSync(join(outside, "tasks.json"), "");
    symlinkSync(join(scratch.path, "repo", "evals", "link"), join(scratch.path, "way"));
    await expectRefused(parse("/etc", "way"), "permission_denied", `outside ${join(scratch.path, "repo")}`);
  });

  test.each(["image", "..", "../.."])("builds from what is in its repository: %s", async (contextPath) => {
    const folder = contextPath === "../.." ? "repo/evals/image" : "repo/evals";
    await expect(parse(contextPath, folder)).resolves.toHaveProperty("tasks");
  });

  test.each(["../.git", "../.git/modules/x", "hidden"])(
    "does not build from %s: it may have tokens",
    async (contextPath) => {
      mkdirSync(join(scratch.path, "repo", ".git", "modules", "x"), { recursive: true });
      symlinkSync("../.git", join(scratch.path, "repo", "evals", "hidden"));
      await expectRefused(parse(contextPath), "permission_denied", "git directory");
      await expect(parse(contextPath, "repo/evals", { trust: true })).resolves.toHaveProperty("tasks");
    },
  );

  test("a context is sent without the settings of a git directory, whatever is not ignored", async () => {
    const top = join(scratch.path, "repo");
    const settings = [".git/config", ".git/config.worktree", ".git/modules/deep/er/config", "evals/.git/config"];
    for (const name of settings) {
      mkdirSync(dirname(join(top, name)), { recursive: true });
      writeFileSync(join(top, name), "token-in-a-url");
    }
    for (const name of ["Dockerfile", ".git/HEAD", "evals/config"])
      writeFileSync(join(top, name), `content of ${name}`);
    for (const ignored of [undefined, "*\n!.git\n!evals\n"]) {
      if (ignored !== undefined) writeFileSync(join(top, ".dockerignore"), ignored);
      const chunks: Uint8Array[] = [];
      const context = await openContext({ tag: "a", contextPath: top, cacheKey: "" });
      for await (const chunk of context.pack()) chunks.push(chunk);
      const sent = Buffer.concat(chunks).toString("latin1");
      for (const name of ["Dockerfile", ".git/HEAD", "evals/config"]) expect(sent).toContain(`content of ${name}`);
      expect(sent).not.toContain("token-in-a-url");
    }
  });
});

function bomb(): string {
  const letters = ["a", "b", "c", "d", "e", "f"];
  return letters
    .slice(1)
    .map((letter, index) => `${letter}: &${letter} [${Array(10).fill(`*${letters[index]}`).join(",")}]`)
    .join("\n");
}
