import { readFile, stat } from "node:fs/promises";
import { SandboxError } from "../../../contracts/errors.js";
import { MAX_FILE_BYTES, type Sandbox } from "../../sandbox/types.js";
import { importArchive } from "../../sandbox.js";
import { findSandboxId } from "../find-id.js";
import type { Invocation } from "../invocation.js";
import { withKept } from "../kept-sandbox.js";

/** `glovebox import <id> <host path> <path inside>`. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags, screen } = invocation;
  const [given = "", host = "", inside = ""] = operands;
  const id = await findSandboxId(given);
  await withKept(invocation, id, `copying ${host} in`, (sandbox) =>
    flags.has("archive") ? importArchive(sandbox, host, inside) : copyIn(sandbox, host, inside),
  );
  if (flags.has("json")) await screen.printJson({ sandbox: id, path: inside });
  else await screen.printNote(`copied ${host} to ${inside} in ${id}`);
  return 0;
}

async function copyIn(sandbox: Sandbox, host: string, inside: string): Promise<void> {
  const found = await stat(host).catch(() => undefined);
  if (!found?.isFile()) return await sandbox.refreshFromHost(host, inside);
  if (found.size > MAX_FILE_BYTES) {
    throw new SandboxError("limit_exceeded", `The file ${host} has more than ${MAX_FILE_BYTES} bytes`, {
      hint: "copy its directory instead",
    });
  }
  await sandbox.writeFile(inside, await readFile(host), { mode: found.mode & 0o777 });
}
