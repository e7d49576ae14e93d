import { readRepositorySettings, readUserSettings } from "./repository-settings.js";

/**
 * What the user's settings and the repository's own say about how files are written: a few words of a known list, nothing that could be a
 * secret, a path or a program.
 */
export async function readCheckoutSettings({ gitDir }: { gitDir: string }): Promise<Readonly<Record<string, string>>> {
  const [user, own] = await Promise.all([readUserSettings(), readRepositorySettings(gitDir)]);
  return { ...user, ...own.core };
}
