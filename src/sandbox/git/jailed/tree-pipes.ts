import { setTimeout as delay } from "node:timers/promises";
import { SandboxError } from "../../../../contracts/errors.js";
import type { DriverProcess } from "../../types.js";
import { INSIDE_GIT } from "../repository.js";
import { finishJailed } from "./finish-jailed.js";

/** Milliseconds after which to look for a pipe. */
const LOOKS: readonly number[] = [500, 2_000, 10_000];

/** Opening a pipe for writing, without waiting, works only while somebody reads it or waits for it. Other pipes do no harm. */
const AWAITED = ["dd", "if=/dev/null", "of={}", "oflag=nonblock", "conv=nocreat,notrunc", "status=none"];
/** For a shell that `find` starts: the outer `find` would replace `{}`. */
const AWAITED_BELOW = AWAITED.join(" ").replace("{}", "{''}");

/**
 * Finds a pipe that git waits for among the files that it reads, in the tree or the sandbox git: the pipe itself, a link to one, or one in a
 * directory that a link leads to. Other ways to a pipe are known to git only; such a call ends at its deadline.
 */
const FIND_PIPE: readonly string[] = [
  ...["find", "/wt", INSIDE_GIT, "(", "-path", "*/.git*", "-o", "-path", `${INSIDE_GIT}/*`, ")", "("],
  ...["-type", "p", "-exec", ...AWAITED, ";", "-print", "-quit", "-o"],
  ...["-type", "l", "-exec", "test", "-p", "{}", ";", "-exec", ...AWAITED, ";", "-print", "-quit", "-o"],
  ...["-type", "l", "-exec", "test", "-d", "{}", ";", "-exec", "sh", "-c"],
  ...[`find -L "$1" -maxdepth 8 -type p -exec ${AWAITED_BELOW} ';' -print`, "sh", "{}", ";", ")"],
];

/** Kills a git that waits at a pipe of the sandbox. Call the returned function when git has ended: it throws if that was the reason. */
export function watchTreeForPipe(
  git: DriverProcess,
  start: (argv: readonly string[]) => Promise<DriverProcess>,
): () => Promise<void> {
  const ended = new AbortController();
  const started = performance.now();
  const look = async (): Promise<string> => {
    for (const after of LOOKS) {
      await delay(Math.max(0, after - (performance.now() - started)), undefined, { signal: ended.signal });
      const { stdout } = await finishJailed(await start(FIND_PIPE));
      const [pipe = ""] = Buffer.from(stdout).toString("utf8").split("\n");
      if (pipe === "") continue;
      await git.kill("SIGKILL");
      return pipe;
    }
    return "";
  };
  const looking = look().catch(() => "");
  return async () => {
    ended.abort();
    const pipe = await looking;
    if (pipe === "") return;
    const isOfTree = pipe.startsWith("/wt/");
    const name = JSON.stringify(isOfTree ? pipe.slice("/wt/".length) : pipe);
    throw new SandboxError(
      isOfTree ? "not_regular_file" : "tampered",
      `${name} is a pipe, and git would wait for it without end`,
      { hint: "remove it in the sandbox, and call again" },
    );
  };
}
