import { setTimeout as delay } from "node:timers/promises";
import { SandboxError } from "../../../../contracts/errors.js";
import type { DriverProcess } from "../../types.js";
import { INSIDE_GIT } from "../repository.js";
import { finishJailed } from "./finish-jailed.js";

/** Milliseconds after which git is looked after. */
const LOOKS: readonly number[] = [500, 2_000, 10_000];

/** Opening a pipe to write, without waiting, works only while somebody reads it or waits to: any other pipe is in nobody's way. */
const AWAITED = ["dd", "if=/dev/null", "of={}", "oflag=nonblock", "conv=nocreat,notrunc", "status=none"];
/** For a shell that a find starts: braces that stand together would be filled in by that one. */
const AWAITED_BELOW = AWAITED.join(" ").replace("{}", "{''}");

/**
 * Every pipe at which git waits when it reads what belongs to it, of the tree or of the git directory of the inside: the pipe itself, a link to
 * one, or one in a directory that a link leads to. Only git knows what a file leads to: a call that waits for that ends at its time.
 */
const FIND_PIPE: readonly string[] = [
  ...["find", "/wt", INSIDE_GIT, "(", "-path", "*/.git*", "-o", "-path", `${INSIDE_GIT}/*`, ")", "("],
  ...["-type", "p", "-exec", ...AWAITED, ";", "-print", "-quit", "-o"],
  ...["-type", "l", "-exec", "test", "-p", "{}", ";", "-exec", ...AWAITED, ";", "-print", "-quit", "-o"],
  ...["-type", "l", "-exec", "test", "-d", "{}", ";", "-exec", "sh", "-c"],
  ...[`find -L "$1" -maxdepth 8 -type p -exec ${AWAITED_BELOW} ';' -print`, "sh", "{}", ";", ")"],
];

/** Ends a git that waits at a pipe of the inside's. The function that it gives is to be called when git has ended, and throws when it was so. */
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
      `${name} is a pipe, at which git would wait for ever`,
      { hint: "remove it inside, and call again" },
    );
  };
}
