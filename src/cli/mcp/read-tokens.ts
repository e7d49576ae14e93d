import { closeSync, fstatSync, openSync, readFileSync } from "node:fs";
import { SandboxError, toSandboxError } from "../../../contracts/errors.js";
import { registerSecret } from "../../util/sanitize.js";
import type { Flags } from "../invocation.js";
import type { Screen } from "../terminal.js";

const VARIABLE = "GLOVEBOX_MCP_TOKEN";
const LARGEST = 1 << 16;

/** The tokens of the clients: the lines of a file, or a variable. None is ever printed, and commands don't get the variable. */
export async function readTokens(flags: Flags, screen: Screen): Promise<string[]> {
  const path = flags.text("token-file");
  const given = process.env[VARIABLE];
  delete process.env[VARIABLE];
  const tokens = path === undefined ? [given ?? ""] : (await readFile(path, screen)).split("\n");
  const found = tokens.map((token) => token.trim()).filter((token) => token !== "");
  if (found.length === 0) {
    throw new SandboxError("unauthenticated", path === undefined ? `${VARIABLE} is not set` : `${path} has no token`, {
      hint: `clients need a token: head -c 32 /dev/urandom | base64 > token; then --token-file token`,
    });
  }
  for (const token of found) registerSecret(token, VARIABLE);
  return found;
}

async function readFile(path: string, screen: Screen): Promise<string> {
  let fd: number;
  try {
    fd = openSync(path, "r");
  } catch (error) {
    throw new SandboxError(
      toSandboxError(error).code,
      `--token-file ${path} can't be read: ${(error as Error).message}`,
    );
  }
  try {
    const { mode, size } = fstatSync(fd);
    if (size > LARGEST) throw new SandboxError("limit_exceeded", `--token-file ${path} has more than ${LARGEST} bytes`);
    if ((mode & 0o077) !== 0) await screen.printNote(`other users can read ${path}: chmod 600 ${path}`);
    return readFileSync(fd, "utf8");
  } finally {
    closeSync(fd);
  }
}
