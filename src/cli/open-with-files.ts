import type { Sandbox } from "../sandbox/types.js";
import { type OpenOptions, openSandbox } from "../sandbox.js";
import { UsageError } from "./commands.js";
import { assertSameStart, copyDirtyFiles, type DirtyFiles, dirtyNote, findDirtyFiles } from "./dirty-files.js";
import { copyHere, explainHere, type Here } from "./here.js";
import type { Flags, Invocation } from "./invocation.js";
import { explainAbsent } from "./kept-sandbox.js";
import type { Progress } from "./terminal.js";

/** Opens the sandbox of `exec` or `shell` and copies in what `--include-dirty` or `--here=copy` asks for. */
export async function openWithFiles(invocation: Invocation, options: OpenOptions, here?: Here): Promise<Sandbox> {
  const { flags, screen, interruption } = invocation;
  const isIncluded = flags.has("include-dirty");
  if (isIncluded) await assertIncludable(flags, options);
  // Looking at the working tree takes as long as `git status`: beside the opening.
  const looking = flags.has("id") ? Promise.resolve(undefined) : findDirtyFiles(options);
  looking.catch(() => undefined);
  const [sandbox, dirty] = await screen.during("opening the sandbox", async (progress) => {
    const opened = await openSandbox(options).catch((error: unknown) =>
      explainAbsent(explainHere(error, here), options),
    );
    try {
      return [opened, await fill(opened, progress)] as const;
    } catch (error) {
      await opened.teardown();
      throw error;
    }
  });
  const note = dirty && dirtyNote(dirty, isIncluded);
  if (note !== undefined) await screen.printNote(note);
  return sandbox;

  async function fill(opened: Sandbox, progress: Progress): Promise<DirtyFiles | undefined> {
    // A note that can't be given is no reason to fail; files that can't be found are.
    const found = await (isIncluded ? looking : looking.catch(() => undefined));
    if (isIncluded || here?.kind === "copy") progress.update("copying files in");
    if (isIncluded && found !== undefined) await copyDirtyFiles(opened, found, interruption.signal);
    await copyHere(opened, here, interruption.signal);
    return found;
  }
}

async function assertIncludable(flags: Flags, options: OpenOptions): Promise<void> {
  for (const other of ["id", "snapshot", "reopen"]) {
    if (flags.has(other))
      throw new UsageError(`--include-dirty does not go together with --${other}`, "remove one of them");
  }
  if (!flags.has("repo")) throw new UsageError("--include-dirty needs --repo <path>", "for example --repo .");
  if ((await findDirtyFiles(options)) === undefined) {
    throw new UsageError(
      `--repo ${options.repo} has no working tree on this machine, so it has no uncommitted edits`,
      "leave --include-dirty out",
    );
  }
  await assertSameStart(options);
}
