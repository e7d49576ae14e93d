import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type FakeGitHub, serveGitHub } from "../../fakes/github.js";
import { installPackage, whyNoPackage } from "../run/installed-package.js";
import type { Runtime } from "../run/runtimes.js";
import { git } from "../scratch.js";

const root = fileURLToPath(new URL("../../..", import.meta.url));

/** Somebody who types what a document says: a home directory with what the installers would put there, and a GitHub. */
export interface ReaderPlace extends AsyncDisposable {
  readonly path: string;
  /** Path of the home directory on this machine. */
  readonly home: string;
  readonly github: FakeGitHub;
}

/** Makes such a place. `runtime` runs `glovebox`, if it isn't Node. */
export async function makeReaderPlace(opts: { runtime?: Runtime | undefined } = {}): Promise<ReaderPlace> {
  const reason = whyNoPackage();
  if (reason !== undefined) throw new Error(reason);
  const path = realpathSync(mkdtempSync(join(tmpdir(), "glovebox-reader-")));
  chmodSync(path, 0o755);
  const home = join(path, "home");
  for (const folder of [home, join(home, "tmp"), join(path, "remotes")]) mkdirSync(folder);
  const github = await serveGitHub(join(path, "remotes"), "main");
  installGlobally(home, opts);
  installInProject(join(home, "first"));
  signIn(home, github);
  return {
    path,
    home,
    github,
    async [Symbol.asyncDispose]() {
      await github[Symbol.asyncDispose]();
      rmSync(path, { recursive: true, force: true });
    },
  };
}

/** Puts the package where the tutorial has npm put it, and beside it a program that stands in for the agent and knows the fix. */
function installGlobally(home: string, { runtime }: { runtime?: Runtime | undefined }): void {
  const prefix = join(home, ".local", "glovebox");
  mkdirSync(join(prefix, "bin"), { recursive: true });
  copyModules(join(prefix, "lib", "node_modules"));
  const [program, cli] = [join(prefix, "bin", "glovebox"), "lib/node_modules/glovebox/dist/src/cli.js"];
  if (runtime === undefined) symlinkSync(join("..", cli), program);
  else {
    const command = [runtime.program, ...runtime.args, join(prefix, cli)].join(" ");
    writeFileSync(program, `#!/bin/sh\nexec ${command} "$@"\n`, { mode: 0o755 });
  }
  const agent = readFileSync(join(root, "tests", "fakes", "programs", "agent.sh"), "utf8");
  const fix = "fake: sh sed -i 's/item.price,/item.price * item.count,/' cart.js";
  const knowing = agent.replace("prompt=$(cat)", () => `cat > /dev/null\nprompt="${fix}"`);
  if (knowing === agent) throw new Error("the agent's program reads its prompt in another way");
  writeFileSync(join(prefix, "bin", "claude"), knowing, { mode: 0o755 });
}

/** A repository with the package installed in it, as the readme's reader has it. */
function installInProject(project: string): void {
  mkdirSync(project);
  copyModules(join(project, "node_modules"));
  writeFileSync(join(project, "file"), "one\n");
  writeFileSync(join(project, ".gitignore"), "node_modules\n");
  git(project, "init", "--quiet", "--initial-branch=main");
  git(project, "add", ".");
  git(project, "commit", "--quiet", "--message=one");
}

function copyModules(to: string): void {
  cpSync(join(installPackage().place, "node_modules"), to, { recursive: true, verbatimSymlinks: true });
}

/** Lets the user's own git push, as somebody has it who works with GitHub. */
function signIn(home: string, { env }: FakeGitHub): void {
  const url = new URL(env.GITHUB_SERVER_URL);
  url.username = "git";
  url.password = encodeURIComponent(env.GITHUB_TOKEN);
  writeFileSync(join(home, ".git-credentials"), `${url.href}\n`, { mode: 0o600 });
  writeFileSync(join(home, ".gitconfig"), "[credential]\n\thelper = store\n");
}
