import { randomUUID } from "node:crypto";
import { equal } from "./assert.js";
import { script } from "./script.js";
import type { ConformanceContext } from "./types.js";

/** A directory that commands can write to and that file calls must never reach. */
export interface Outside {
  /** Absolute, outside the work directory. */
  readonly path: string;
  /** The content of its file `canary`. */
  readonly secret: string;
  /** Fails if it has changed. */
  assertUntouched(): Promise<void>;
}

/** Makes a directory with a canary in the sandbox, but outside the work directory. */
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
