import { randomUUID } from "node:crypto";
import { equal } from "./assert.js";
import { script } from "./script.js";
import type { ConformanceContext } from "./types.js";

/** A directory that commands can write and the file calls must never reach. */
export interface Outside {
  /** Absolute, outside the work directory. */
  readonly path: string;
  /** Content of its file `canary`. */
  readonly secret: string;
  /** Fails unless it is as it was made. */
  assertUntouched(): Promise<void>;
}

/** Makes a directory with a canary inside the sandbox but outside its work directory. */
export async function makeOutside({ sandbox, defer }: ConformanceContext): Promise<Outside> {
  const path = `/tmp/glovebox-conformance-${randomUUID()}`;
  const secret = randomUUID();
  await script(sandbox, 'mkdir "$1" && printf %s "$2" > "$1/canary"', path, secret);
  defer(() => sandbox.exec({ argv: ["rm", "-rf", path] }));
  return {
    path,
    secret,
    async assertUntouched() {
      const seen = await script(sandbox, 'cd "$1" && ls -A && cat canary', path);
      equal(seen, `canary\n${secret}`, "the directory outside and its canary");
    },
  };
}
