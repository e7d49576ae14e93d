import { resumeRun } from "../../harness.js";
import type { Invocation } from "../invocation.js";
import { findToken } from "../token.js";
import { limitsOf } from "./run.js";
import { environmentFailure, followRun } from "./run-view/follow-run.js";

/** `glovebox resume <run>`. */
export async function run(invocation: Invocation): Promise<number> {
  const { flags, operands } = invocation;
  const [runId = ""] = operands;
  const [from, found] = [flags.text("from"), findToken(process.env)];
  try {
    const limits = limitsOf(flags);
    const options = {
      runId,
      trust: flags.has("trust"),
      ...(from !== undefined && { from }),
      ...(found !== undefined && { githubToken: found.token }),
      ...(Object.keys(limits).length > 0 && { limits }),
    };
    return await followRun(invocation, (more) => resumeRun({ ...options, ...more }));
  } catch (error) {
    return await environmentFailure(invocation, error, "resume");
  }
}
