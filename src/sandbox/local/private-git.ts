import type { JailBind } from "./jail.js";
export async function createPrivateGit(_o: unknown): Promise<JailBind[]> {
  return [];
}
