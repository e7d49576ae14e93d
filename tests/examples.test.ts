import { execFile } from "node:child_process";
import { existsSync, readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { describe, expect, test } from "vitest";

const run = promisify(execFile);
const root = dirname(dirname(fileURLToPath(import.meta.url)));

/** What each program must have printed when it found nothing wrong with itself. */
const LAST_LINES: Readonly<Record<string, RegExp>> = {
  "chat-executor": /^error send_mail \{\}: there is no tool send_mail$/,
  "daytona-branch": /^(?:not run: set DAYTONA_API_KEY|pushed glovebox-)/,
  demo: /^Everything went as it must\.$/,
  "dev-server": /^served, changed, stopped$/,
  hello: /^1 cat: \/etc\/shadow: /,
  "own-backend": /^folder: \d{3} passed, 0 failed, \d+ skipped$/,
  "race-to-green": /^right operator was green first; 2 others were torn down$/,
  "save-points": /^saved, spoilt, restored, outlived$/,
  "stream-to-web": /^streamed, held back, aborted$/,
  tour: /^the tour is over$/,
  "untrusted-script": /^it got nothing, and nothing of it is left$/,
};

describe("examples", () => {
  test("are all run here", () => {
    const names = readdirSync(join(root, "examples")).filter((name) => name.endsWith(".ts"));
    expect(names.map((name) => name.replace(/\.ts$/, "")).sort()).toEqual(Object.keys(LAST_LINES).sort());
  });

  test.each(Object.entries(LAST_LINES))("%s finds itself in order", { timeout: 300_000 }, async (name, expected) => {
    const path = join(root, "dist", "examples", `${name}.js`);
    if (!existsSync(path)) throw new Error(`there is no ${path}: type npm run build first`);
    const program = run(process.execPath, [path], { cwd: root, maxBuffer: 10 * 1024 * 1024 });
    const { stdout } = await program.catch((error: { stdout?: string; stderr?: string }) => {
      throw new Error(`${name} failed:\n${error.stdout}${error.stderr}`);
    });
    expect(stdout.trim().split("\n").at(-1)).toMatch(expected);
  });
});
