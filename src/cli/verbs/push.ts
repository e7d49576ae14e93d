import { SandboxError } from "../../../contracts/errors.js";
import { parseWord, UsageError } from "../commands.js";
import { findRunOrSandbox } from "../find-id.js";
import type { Invocation } from "../invocation.js";
import { withKept } from "../kept-sandbox.js";
import { findToken, type RemoteToken, TOKENS } from "../token.js";

/** `glovebox push <id> --branch <name>`. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags, screen } = invocation;
  const [given = ""] = operands;
  const branch = flags.text("branch");
  const found = await findRunOrSandbox(given);
  // Only a sandbox needs a branch: without one, an unknown operand was meant as a run.
  if (found.sandbox === undefined && (found.run !== undefined || branch === undefined))
    return await pushRun(invocation, found.run ?? given);
  const id = found.sandbox ?? given;
  if (branch === undefined)
    throw new UsageError("push needs --branch <name>", `glovebox push ${id} --branch fix/login`);
  const { token, server } = requireToken();
  const result = await withKept(invocation, id, `pushing ${branch}`, async (sandbox) => {
    if (sandbox.capabilities.git)
      return await sandbox.pushBranch(branch, token, server === undefined ? {} : { server });
    throw new SandboxError("unsupported", `Sandbox "${id}" has no repository, so there is nothing to push`, {
      hint: "open one with glovebox exec --repo . --keep -- …",
    });
  });
  if (flags.has("json")) await screen.printJson({ sandbox: id, branch, ...result });
  if (!result.pushed) {
    const hint = "the remote's message is after the colon; nothing was changed here or there";
    await screen.printError(`could not push ${branch}: ${result.error ?? "the remote gave no reason"}`, hint);
    return 1;
  }
  if (!flags.has("json")) await screen.print(`${branch}\n`);
  return 0;
}

/** Pushes the changes of a run and opens its pull request. */
async function pushRun({ flags, screen }: Invocation, id: string): Promise<number> {
  const { pushRunAgain, EXIT_CODES } = await import("../../harness.js");
  const base = flags.text("base");
  if (flags.has("branch")) throw new UsageError("a run has its own branch", "remove --branch");
  const options = {
    githubToken: findToken(process.env)?.token,
    ...(flags.has("draft") && { draft: true }),
    ...(base !== undefined && { base }),
    ...(flags.has("pr-with") && { prWith: parseWord("--pr-with", flags.text("pr-with") ?? "", ["rest", "gh"]) }),
  };
  const result = await screen.during(`pushing ${id}`, () => pushRunAgain(id, options));
  if (flags.has("json")) await screen.printJson({ run: id, ...result });
  else if (result.prUrl !== undefined) await screen.print(`${result.prUrl}\n`);
  else if (result.state === "no_changes")
    await screen.printNote(`run ${id} changed nothing, so there is nothing to push`);
  if (result.error === undefined) return 0;
  const hint =
    result.state === "no_token"
      ? `set ${TOKENS.join(" or ")}: GITHUB_TOKEN=… glovebox push ${id}`
      : "the remote's message is after the colon; run glovebox push again";
  await screen.printError(result.error, hint);
  return EXIT_CODES.push;
}

function requireToken(): RemoteToken {
  const token = findToken(process.env);
  if (token !== undefined) return token;
  throw new SandboxError("unauthenticated", `No token found: none of ${TOKENS.join(", ")} is set`, {
    hint: "set one: GITHUB_TOKEN=… glovebox push …",
  });
}
