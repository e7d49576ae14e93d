import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { findEndpoint } from "../../src/sandbox/backends/docker/engine/endpoint.js";
import { Engine } from "../../src/sandbox/backends/docker/engine/engine.js";
import { readProgress } from "../../src/sandbox/backends/docker/engine/progress.js";
import type { BuildStage, ImageSpec, TaskEvent } from "../../src/tasks/types.js";
import { BUSYBOX } from "../support/docker/engine.js";
import { LOGIN, startRegistry } from "../support/docker/registry.js";
import { askEngine, describeTasks, taskOf } from "../support/docker/task-place.js";
import { expectRefused } from "../support/refused.js";

const run = `${process.pid}`;
const tag = (name: string): string => `glovebox-images/${name}:${run}`;
const idOf = async (image: string): Promise<string> =>
  (await askEngine<{ Id: string }>("GET", `/images/${image}/json`)).Id;
const noRegistry = existsSync("/usr/bin/docker-registry") ? undefined : "not installed: docker-registry";

describeTasks("images", [BUSYBOX], (place) => {
  const context = (name: string, files: Record<string, string>): string => {
    const path = join(place.path, name);
    for (const [file, text] of Object.entries(files)) {
      mkdirSync(join(path, file, ".."), { recursive: true });
      writeFileSync(join(path, file), text);
    }
    return path;
  };
  const prepare = async (...images: ImageSpec[]): Promise<TaskEvent[]> => {
    const manager = place.manager();
    const batch = await manager.setupBatch(images.map((imageSpec, n) => taskOf(`t${n}`, [], { imageSpec })));
    await batch.teardown();
    return manager.events;
  };
  const builtIn = (events: TaskEvent[]): string[] => [
    ...new Set(events.flatMap(({ type, image = "" }) => (type === "image-build" ? [image] : []))),
  ];

  test.concurrent("[S2-DOC-build] are built with arguments and a Dockerfile of any name, and told of as they go", async () => {
    const manager = place.manager();
    const imageSpec: ImageSpec = {
      type: "build",
      tag: tag("args"),
      contextPath: context("args", {
        "docker/Dockerfile.dev": `FROM ${BUSYBOX}\nARG WORD\nENV SAID=$WORD\nCOPY note /note\n`,
        note: "n\n",
      }),
      dockerfilePath: "docker/Dockerfile.dev",
      buildArgs: { WORD: "hello there" },
    };
    await using batch = await manager.setupBatch([taskOf("args", [], { imageSpec })]);
    const steps = manager.events.flatMap(({ progress }) =>
      progress === undefined ? [] : [`${progress.current}/${progress.total}`],
    );
    // The last one is the label that says what it was made of.
    expect(steps).toEqual(["1/5", "2/5", "3/5", "4/5", "5/5"]);
    const task = await batch.setupTask(taskOf("args", [], { imageSpec }));
    expect((await manager.exec(task.state.agentContainerId, "echo $SAID; cat /note")).stdout).toBe("hello there\nn\n");
    await batch.teardown();
    expect(await idOf(tag("args"))).toMatch(/^sha256:/);
  });

  test.concurrent("[S2-DOC-built-images-stay] are reused as they are, and built anew when context, arguments, Dockerfile or mode changed", async () => {
    const path = context("again", {
      Dockerfile: `FROM ${BUSYBOX}\nARG A\nCOPY . /app\n`,
      file: "1",
      ".dockerignore": "ignored\n",
      ignored: "1",
    });
    const spec = (buildArgs = {}): ImageSpec => ({ type: "build", tag: tag("again"), contextPath: path, buildArgs });
    const wasBuilt = async (image: ImageSpec): Promise<boolean> => builtIn(await prepare(image)).length > 0;
    expect(await wasBuilt(spec())).toBe(true);
    const first = await idOf(tag("again"));
    expect(await wasBuilt(spec())).toBe(false);
    writeFileSync(join(path, "ignored"), "2");
    expect(await wasBuilt(spec())).toBe(false);
    expect(await idOf(tag("again"))).toBe(first);
    writeFileSync(join(path, "file"), "2");
    expect(await wasBuilt(spec())).toBe(true);
    expect(await wasBuilt(spec({ A: "1" }))).toBe(true);
    writeFileSync(join(path, "Dockerfile"), `FROM ${BUSYBOX}\nCOPY . /other\n`);
    expect(await wasBuilt(spec({ A: "1" }))).toBe(true);
    expect(await idOf(tag("again"))).not.toBe(first);
  });

  test.concurrent("[S2-DOC-multi-stage] [S2-DOC-incremental] stand on each other in any order, each is kept, and only what changed is built anew", async () => {
    const base = context("base", { Dockerfile: `FROM ${BUSYBOX}\nCOPY mark /base\n`, mark: "base\n" });
    const next = (name: string): string =>
      context(name, { Dockerfile: `ARG BASE_IMAGE\nFROM \${BASE_IMAGE}\nCOPY mark /${name}\n`, mark: `${name}\n` });
    const chain = (key: string): BuildStage[] => [
      { tag: tag("final"), contextPath: next("final"), parentTag: tag("env") },
      { tag: tag("base"), contextPath: base, cacheKey: "v1" },
      { tag: tag("env"), contextPath: next("env"), parentTag: tag("base"), cacheKey: key },
    ];
    const other: BuildStage = { tag: tag("sibling"), contextPath: next("sibling"), parentTag: tag("env") };
    const spec = (key: string): ImageSpec => ({ type: "multi-stage", stages: chain(key), finalTag: tag("final") });
    const sibling = (key: string): ImageSpec => ({
      type: "multi-stage",
      stages: [...chain(key).slice(1), other],
      finalTag: tag("sibling"),
    });
    expect(builtIn(await prepare(spec("v1"), sibling("v1"))).sort()).toEqual(
      [tag("base"), tag("env"), tag("final"), tag("sibling")].sort(),
    );
    const baseId = await idOf(tag("base"));
    expect(builtIn(await prepare(spec("v1"), sibling("v1")))).toEqual([]);
    expect(builtIn(await prepare(spec("v2"))).sort()).toContain(tag("env"));
    expect(await idOf(tag("base"))).toBe(baseId);
    await askEngine("DELETE", `/images/${tag("final")}`);
    expect(builtIn(await prepare(spec("v2")))).toEqual([tag("final")]);
    const manager = place.manager();
    await using batch = await manager.setupBatch([]);
    const task = await batch.setupTask(taskOf("final", [], { imageSpec: spec("v2") }));
    expect((await manager.exec(task.state.agentContainerId, "cat /base /env /final")).stdout).toBe(
      "base\nenv\nfinal\n",
    );
  });

  test.concurrent("leave out what .dockerignore names, as the docker command does", async () => {
    const manager = place.manager();
    const imageSpec: ImageSpec = {
      type: "build",
      tag: tag("ignore"),
      contextPath: context("ignore", {
        Dockerfile: `FROM ${BUSYBOX}\nCOPY . /app\n`,
        ".dockerignore":
          "# comment\nsecret.txt\n**/*.log\nnode_modules\n!node_modules/keep/it\n/only/here\nDockerfile\n",
        "secret.txt": "s",
        "a.log": "l",
        "sub/deep/x.log": "l",
        "sub/deep/y.txt": "y",
        "node_modules/drop/a": "a",
        "node_modules/keep/it": "b",
        "only/here": "o",
        "sub/only/here": "o",
      }),
    };
    await using batch = await manager.setupBatch([]);
    const task = await batch.setupTask(taskOf("ignore", [], { imageSpec }));
    const { stdout } = await manager.exec(task.state.agentContainerId, "cd /app && find . -type f | sort");
    expect(stdout.trim().split("\n")).toEqual([
      "./.dockerignore",
      "./node_modules/keep/it",
      "./sub/deep/y.txt",
      "./sub/only/here",
    ]);
    const env = { ...process.env, DOCKER_BUILDKIT: "0" };
    execFileSync("docker", ["build", "-q", "-t", tag("oracle"), imageSpec.contextPath], { env, stdio: "pipe" });
    const listed = execFileSync(
      "docker",
      ["run", "--rm", tag("oracle"), "sh", "-c", "cd /app && find . -type f | sort"],
      { stdio: "pipe" },
    );
    expect(listed.toString()).toBe(stdout);
  });

  test.concurrent("[S2-DOC-single-flight] are made once, however many ask at one time", async () => {
    const path = context("once", { Dockerfile: `FROM ${BUSYBOX}\nCOPY x /x\n`, x: "x" });
    const imageSpec: ImageSpec = { type: "build", tag: tag("once"), contextPath: path };
    const manager = place.manager();
    await using batch = await manager.setupBatch([1, 2, 3].map((n) => taskOf(`t${n}`, [], { imageSpec })));
    await Promise.all([1, 2].map((n) => batch.setupTask(taskOf(`t${n}`, [], { imageSpec }))));
    expect(
      manager.events.filter(({ type, message }) => type === "image-build" && message === `building ${tag("once")}`),
    ).toHaveLength(1);
  });

  test.concurrent("that were built before are only looked at with verifyOnly", async () => {
    const path = context("verify", { Dockerfile: `FROM ${BUSYBOX}\nCOPY x /x\n`, x: "x" });
    const imageSpec: ImageSpec = { type: "build", tag: tag("verify"), contextPath: path };
    const tasks = [taskOf("v", [], { imageSpec })];
    const verify = place.manager({ verifyOnly: true });
    await expectRefused(verify.setupBatch(tasks), "not_found", tag("verify"), "verifyOnly");
    await prepare(imageSpec);
    await (await verify.setupBatch(tasks)).teardown();
    writeFileSync(join(path, "x"), "y");
    await expectRefused(verify.setupBatch(tasks), "conflict", tag("verify"));
    await expectRefused(
      verify.setupBatch([taskOf("p", [], { imageSpec: { type: "pull", tag: "glovebox-images/absent" } })]),
      "not_found",
      "glovebox-images/absent",
    );
  });

  test.concurrent("that fail to build are errors with the end of the log, and leave no container", async () => {
    const files = { Dockerfile: `FROM ${BUSYBOX}\nRUN echo the reason is here && exit 4\n` };
    const failing: ImageSpec = { type: "build", tag: tag("failing"), contextPath: context("failing", files) };
    await expectRefused(
      prepare(failing),
      "internal",
      tag("failing"),
      "the reason is here",
      "returned a non-zero code: 4",
    );
    const left = await askEngine<{ Image: string; Command: string }[]>("GET", "/containers/json", { all: true });
    expect(left.filter(({ Command }) => Command.includes("the reason is here"))).toEqual([]);
  });

  test.concurrent.each([
    ["a context that is not there", { contextPath: "/nowhere/at/all" }, "not_found", "/nowhere/at/all"],
    ["a context without a Dockerfile", { files: { x: "x" } }, "not_found", "has no Dockerfile"],
    ["a Dockerfile that is not one", { files: { Dockerfile: "FORM busybox\n" } }, "invalid_argument", "FORM"],
    ["a base that is not there", { files: { Dockerfile: "FROM 127.0.0.1:1/no/base\n" } }, "unavailable", "127.0.0.1:1"],
  ])(
    "with %s are refused",
    async (name, { contextPath, files }: { contextPath?: string; files?: Record<string, string> }, code, words) => {
      const path = contextPath ?? context(name.replaceAll(" ", "-"), files ?? {});
      await expectRefused(prepare({ type: "build", tag: tag("bad"), contextPath: path }), code, words);
    },
  );

  test("with parents in a circle, or two descriptions, are refused before anything is made", async () => {
    const stage = (name: string, parent: string): BuildStage => ({ tag: name, contextPath: "/x", parentTag: parent });
    const circle: ImageSpec = {
      type: "multi-stage",
      stages: [stage("a:1", "b:1"), stage("b:1", "a:1")],
      finalTag: "a:1",
    };
    await expectRefused(prepare(circle), "invalid_argument", "each other's parents", "a:1 -> b:1 -> a:1");
    const one: ImageSpec = { type: "build", tag: "same", contextPath: "/x" };
    const two: ImageSpec = { type: "build", tag: "same:latest", contextPath: "/y" };
    await expectRefused(prepare(one, two), "conflict", "same", "two different descriptions");
  });

  test("[S2-DOC-pull] are pulled in parallel when they are not there, with the login of the Docker config, and a spoilt layer is an error", async ({
    skip,
  }) => {
    if (noRegistry !== undefined) skip(noRegistry);
    const port = 5_100 + (process.pid % 800);
    using open = await startRegistry(join(place.path, "open"), port);
    using guarded = await startRegistry(join(place.path, "guarded"), port + 1, { isPrivate: true });
    const auth = Buffer.from(`${LOGIN.username}:${LOGIN.password}`).toString("base64");
    const config = join(place.path, "docker-config");
    mkdirSync(config);
    writeFileSync(join(config, "config.json"), JSON.stringify({ auths: { [guarded.host]: { auth } } }));
    const header = Buffer.from(JSON.stringify({ ...LOGIN, serveraddress: guarded.host })).toString("base64");
    const pushed = async (image: string, content: string): Promise<void> => {
      const path = context(content, { Dockerfile: `FROM ${BUSYBOX}\nCOPY mark /mark\n`, mark: content.repeat(50_000) });
      await prepare({ type: "build", tag: image, contextPath: path });
      await push(image, header);
      await askEngine("DELETE", `/images/${image}`, { force: true });
    };
    const [first, second, secret] = [`${open.host}/a/one:1`, `${open.host}/two`, `${guarded.host}/team/secret:1`];
    await pushed(first, "one");
    await pushed(second, "two");
    await pushed(secret, "secret");
    const before = process.env["DOCKER_CONFIG"];
    try {
      process.env["DOCKER_CONFIG"] = join(place.path, "no-such-folder");
      await expectRefused(prepare({ type: "pull", tag: secret }), "unauthenticated", secret);
      process.env["DOCKER_CONFIG"] = config;
      const events = await prepare(
        { type: "pull", tag: first },
        { type: "pull", tag: second },
        { type: "pull", tag: secret },
      );
      expect(new Set(events.flatMap(({ type, image }) => (type === "image-pull" ? [image] : [])))).toEqual(
        new Set([first, `${second}:latest`, secret]),
      );
      expect(JSON.stringify(events)).not.toContain(LOGIN.password);
      expect((await prepare({ type: "pull", tag: first })).map(({ type }) => type)).not.toContain("image-pull");
      await expectRefused(prepare({ type: "pull", tag: `${open.host}/a/one:9` }), "not_found", "/a/one:9");
      await askEngine("DELETE", `/images/${first}`, { force: true });
      open.corrupt();
      await expect(prepare({ type: "pull", tag: first })).rejects.toMatchObject({
        name: "SandboxError",
        message: expect.stringContaining(`Pulling ${first} failed`),
      });
    } finally {
      if (before === undefined) delete process.env["DOCKER_CONFIG"];
      else process.env["DOCKER_CONFIG"] = before;
    }
  });
});

async function push(image: string, auth: string): Promise<void> {
  const engine = new Engine(findEndpoint());
  const [name, tagged = "latest"] = image.split(/:(?=[^/]*$)/);
  const answer = await engine.stream("POST", `/images/${name}/push`, {
    query: { tag: tagged },
    headers: { "X-Registry-Auth": auth },
  });
  for await (const _ of readProgress(answer as AsyncIterable<Buffer>, `Pushing ${image}`));
  engine.close();
}
