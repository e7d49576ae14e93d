import { execFileSync } from "node:child_process";

/** The files below some folders that contain a text. */
export function filesWith(text: string, folders: readonly string[]): string[] {
  try {
    return execFileSync("grep", ["-rlaF", "--", text, ...folders], { encoding: "utf8" })
      .trimEnd()
      .split("\n");
  } catch (error) {
    const { status, stdout } = error as { status: number; stdout: string };
    if (status !== 1) throw error;
    return stdout.split("\n").filter(Boolean);
  }
}
