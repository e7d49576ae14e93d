import { execFile } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";
import { startDaggerEngine } from "../fakes/dagger/engine.js";
import { serveGitHub } from "../fakes/github.js";
import { startDaytonaService } from "../support/daytona/service.js";
import { BUSYBOX, useEngine, whyNoDocker } from "../support/docker/engine.js";
import { createRepository, createScratch, git } from "../support/scratch.js";

const run = promisify(execFile);
const root = fileURLToPath(new URL("../..", import.meta.url));

/** What each program must have printed when it found nothing wrong with itself. */
const LAST_LINES: Readonly<Record<string, RegExp>> = {
  "agent-config": /^declared, decided, written$/,
  batch: /^ran, stopped, went on, each task once$/,
  "chat-executor": /^error send_mail \{\}: there is no tool send_mail$/,
  container: /^confined, saved, forked, refused$/,
  dagger: /^failed, kept, forked, restored$/,
  "daytona-branch": /^(?:not run: set DAYTONA_API_KEY|pushed glovebox-)/,
  demo: /^Everything went as it must\.$/,
  "dev-server": /^served, changed, stopped$/,
  "mcp-server": /^served, refused, closed$/,
  "network-rules": /^to allow it: --network 'allow=DELETE api\.example\.com\/v1\/models\/1'$/,
  kubernetes: /^opened, confined, refused, forked$/,
  hello: /^1 cat: \/etc\/shadow: /,
  "own-backend": /^folder: \d{3} passed, 0 failed, \d+ skipped$/,
  "own-manager": /^a manager of its own ran a task and its clone$/,
  "plan-install": /^package-lock\.json: npm ci reaches \d+ hosts that no node does$/,
  "own-blueprint": /^a red test, a repair, a green test, a commit$/,
  "pull-request": /^changed, checked, pushed, asked$/,
  "race-to-green": /^right operator was green first; 2 others were torn down$/,
  repair: /^Repaired in \S+; the test is green\.$/,
  "save-points": /^saved, spoilt, restored, outlived, opened by name$/,
  secrets: /^a placeholder inside, the value outside, two refusals$/,
  "stream-to-web": /^streamed, held back, aborted$/,
  tasks: /^served, cloned, told what was broken$/,
  tour: /^the tour is over$/,
  vercel: /^(computed, cut short, forked|not run: There are no credentials for Vercel)$/,
  "untrusted-python": /^(computed, refused|not run: there is no python3 on this machine)$/,
  "untrusted-script": /^it got nothing, and nothing of it is left$/,
};

/** What an example finds around it, or why it cannot. */
interface Surroundings extends AsyncDisposable {
  env?: Readonly<Record<string, string>>;
  missing?: string;
}

const NOTHING: Surroundings = { [Symbol.asyncDispose]: async () => undefined };

async function withDocker(): Promise<Surroundings> {
  const missing = whyNoDocker(BUSYBOX);
  if (missing !== undefined) return { ...NOTHING, missing };
  return { ...NOTHING, env: { DOCKER_HOST: await useEngine(BUSYBOX), GLOVEBOX_EXAMPLE_IMAGE: BUSYBOX } };
}

/** It needs a cluster that enforces network policies, which `tests/kubernetes` has. */
async function withKubernetes(): Promise<Surroundings> {
  return { ...NOTHING, missing: "no cluster: npm run test:kubernetes runs it" };
}

async function withDagger(): Promise<Surroundings> {
  const engine = await startDaggerEngine();
  const env = { DAGGER_SESSION_PORT: String(engine.port), DAGGER_SESSION_TOKEN: engine.token };
  return { env, [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose]() };
}

/** The service itself where there is a key for it, else a stand-in. */
async function withDaytona(): Promise<Surroundings> {
  if (process.env["DAYTONA_API_KEY"]) return NOTHING;
  const { service, token, close } = await startDaytonaService();
  const env = { DAYTONA_API_KEY: service.apiKey, DAYTONA_API_URL: service.apiUrl, GITHUB_TOKEN: token };
  return { env: { ...env, GLOVEBOX_EXAMPLE_REPO: "acme/widgets" }, [Symbol.asyncDispose]: close };
}

/** A stand-in for GitHub with a repository that has one text. */
async function withGitHub(): Promise<Surroundings> {
  const scratch = createScratch();
  const github = await serveGitHub(join(scratch.path, "remotes"), "main", true);
  git(createRepository(join(scratch.path, "repo")), "push", "--quiet", github.remote, "main");
  return {
    env: { ...github.env, GLOVEBOX_HOME: scratch.home, GLOVEBOX_EXAMPLE_REPO: "acme/widgets" },
    async [Symbol.asyncDispose]() {
      await github[Symbol.asyncDispose]();
      scratch.remove();
    },
  };
}

const SURROUNDINGS: Readonly<Record<string, () => Promise<Surroundings>>> = {
  container: withDocker,
  tasks: withDocker,
  dagger: withDagger,
  kubernetes: withKubernetes,
  "daytona-branch": withDaytona,
  "pull-request": withGitHub,
};

describe("examples", () => {
  test("are all run here", () => {
    const names = readdirSync(join(root, "examples")).filter((name) => /\.m?ts$|\.mjs$/.test(name));
    // Those of the adapters need their frameworks: tests/adapters runs them.
    const adapters = ["adk.mjs", "ai-sdk.mjs", "computesdk.mjs", "deepagents.mjs", "langchain.mjs"];
    const known = [
      ...Object.keys(LAST_LINES).map((name) => `${name}.ts`),
      ...[...adapters, "claude-agent-sdk.mjs", "mastra.mjs", "openai-agents.mjs"],
    ];
    expect(names.sort()).toEqual(known.sort());
  });

  test.for(Object.entries(LAST_LINES))(
    "%s finds itself in order",
    { timeout: 300_000 },
    async ([name, expected], { skip }) => {
      await using surroundings = (await SURROUNDINGS[name]?.()) ?? NOTHING;
      if (surroundings.missing !== undefined) return skip(surroundings.missing);
      const path = join(root, "dist", "examples", `${name}.js`);
      if (!existsSync(path)) throw new Error(`there is no ${path}: type npm run build first`);
      const env = { ...process.env, ...surroundings.env };
      const program = run(process.execPath, [path], { cwd: root, env, maxBuffer: 10 * 1024 * 1024 });
      const { stdout } = await program.catch((error: { stdout?: string; stderr?: string }) => {
        throw new Error(`${name} failed:\n${error.stdout}${error.stderr}`);
      });
      expect(stdout.trim().split("\n").at(-1)).toMatch(expected);
    },
  );

  test("ai-sdk works with the AI SDK itself, and a model that is not real", { timeout: 300_000 }, async ({ skip }) => {
    const sdk = join(root, "tests", "ai-sdk", "node_modules", "ai");
    if (!existsSync(sdk)) return skip("it is not installed: npm ci --prefix tests/ai-sdk");
    const place = mkdtempSync(join(tmpdir(), "glovebox-ai-sdk-"));
    try {
      // Where a user has it: beside both packages.
      mkdirSync(join(place, "node_modules"));
      symlinkSync(root, join(place, "node_modules", "glovebox"));
      symlinkSync(sdk, join(place, "node_modules", "ai"));
      copyFileSync(join(root, "examples", "ai-sdk.mjs"), join(place, "ai-sdk.mjs"));
      const { stdout } = await run(process.execPath, [join(place, "ai-sdk.mjs")], { cwd: place });
      expect(stdout).toBe("called, answered\n");
    } finally {
      rmSync(place, { recursive: true });
    }
  });
});
