import type { Invocation } from "./invocation.js";
import { withKept } from "./kept-sandbox.js";

/** `glovebox import <id> <host path> <path inside>`. */
export async function run(invocation: Invocation): Promise<number> {
  const { operands, flags, screen } = invocation;
  const [id = "", host = "", inside = ""] = operands;
  await withKept(invocation, id, `copying ${host} in`, (sandbox) => sandbox.refreshFromHost(host, inside));
  if (flags.has("json")) await screen.printJson({ sandbox: id, path: inside });
  else await screen.remark(`${host} is in ${inside} of ${id}`);
  return 0;
}
