import { readFileSync, realpathSync, statSync } from "node:fs";
import { isAbsolute } from "node:path";
import { userHome } from "../../machine/user-home.js";
import { isWithin, realPathOf } from "../../util/repository-of.js";
import { type Asker, askTool } from "./ask-tool.js";
import type { ToolSettings } from "./tool.js";

const MAX_BYTES = 1 << 20;

/**
 * The configuration of this user. A file that really lies in the repository is not the user's, whatever names it, and a tool that would read it is
 * not asked.
 */
export function userConfig(
  repository: string | undefined,
  { env = process.env, home = userHome(), ...asker }: Partial<Omit<Asker, "repository">> & { home?: string } = {},
): ToolSettings {
  const isOfRepository = (real: string): boolean => repository !== undefined && isWithin(real, realPathOf(repository));
  let foreign = isOfRepository(realPathOf(home)) ? home : undefined;
  const read = (path: string): string | undefined => {
    if (!isAbsolute(path)) return undefined;
    try {
      const real = realpathSync(path);
      if (isOfRepository(real)) {
        foreign = path;
        return undefined;
      }
      const found = statSync(real);
      return found.isFile() && found.size <= MAX_BYTES ? readFileSync(real, "utf8") : undefined;
    } catch {
      return undefined;
    }
  };
  return {
    env,
    home,
    read,
    ask: async (question) => {
      if (foreign !== undefined) return { reason: `${foreign} lies in the repository` };
      return await askTool(question, { env, repository, ...asker });
    },
  };
}
