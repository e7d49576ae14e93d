import { SandboxError } from "../../../contracts/errors.js";
import { parseWord, UsageError } from "../commands.js";
import type { Invocation } from "../invocation.js";
import { withKept } from "../kept-sandbox.js";
import { findToken, type RemoteToken, TOKENS } from "../token.js";

/** `glovebox push <id> --branch <name>`. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags, screen } = invocation;
  const [id = ""] = operands;
  const isSandbox = /^[0-9a-f]{16}$/.test(id);
  const branch = flags.text("branch");
  const { isRun } = await import("../../harness.js");
  if (!isSandbox && (branch === undefined || (await isRun(id)))) return await pushRun(invocation, id);
  if (branch === undefined)
    throw new UsageError("push needs --branch <name>", `glovebox push ${id} --branch fix/login`);
  const { token, server } = requireToken();
  const result = await withKept(invocation, id, `pushing ${branch}`, async (sandbox) => {
    if (sandbox.capabilities.git)
      return await sandbox.pushBranch(branch, token, server === undefined ? {} : { server });
    throw new SandboxError("unsupported", `Sandbox "${id}" works on no repository, so there is nothing to push`, {
      hint: "glovebox exec --repo . --keep -- … makes one that does",
    });
  });
  if (flags.has("json")) await screen.printJson({ sandbox: id, branch, ...result });
  if (!result.pushed) {
    const hint = "what the remote says is after the colon; nothing was changed here or there";
    await screen.complain(`${branch} was not pushed: ${result.error ?? "the remote gave no reason"}`, hint);
    return 1;
  }
  if (!flags.has("json")) await screen.print(`${branch}\n`);
  return 0;
}

/** Pushes what a run made, and opens its pull request. */
async function pushRun({ flags, screen }: Invocation, id: string): Promise<number> {
  const { pushRunAgain, EXIT_CODES } = await import("../../harness.js");
  const base = flags.text("base");
  if (flags.has("branch")) throw new UsageError("a run has its own branch", "leave --branch out");
  const options = {
    githubToken: process.env["GITHUB_TOKEN"],
    ...(flags.has("draft") && { draft: true }),
    ...(base !== undefined && { base }),
    ...(flags.has("pr-with") && { prWith: parseWord("--pr-with", flags.text("pr-with") ?? "", ["rest", "gh"]) }),
  };
  const result = await screen.during(`pushing ${id}`, () => pushRunAgain(id, options));
  if (flags.has("json")) await screen.printJson({ run: id, ...result });
  else if (result.prUrl !== undefined) await screen.print(`${result.prUrl}\n`);
  else if (result.state === "no_changes") await screen.remark(`run ${id} changed nothing, so there is nothing to push`);
  if (result.error === undefined) return 0;
  const hint =
    result.state === "no_token"
      ? `GITHUB_TOKEN=… glovebox push ${id}; a token is never an argument`
      : "what the remote says is after the colon; glovebox push tries again";
  await screen.complain(result.error, hint);
  return EXIT_CODES.push;
}

function requireToken(): RemoteToken {
  const token = findToken(process.env);
  if (token !== undefined) return token;
  throw new SandboxError("unauthenticated", `There is no token: ${TOKENS.join(", ")} are not set`, {
    hint: "GITHUB_TOKEN=… glovebox push …; a token is never an argument",
  });
}
