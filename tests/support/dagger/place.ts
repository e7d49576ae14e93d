import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import type { DaggerOptions } from "../../../src/sandbox/dagger.js";
import type { SandboxOptions } from "../../../src/sandbox/types.js";
import { type DaggerEngine, startDaggerEngine } from "../../fakes/dagger/engine.js";
import { createScratch, type Scratch } from "../scratch.js";
import { daggerSdk } from "./sdk.js";

/** A fake engine and a place for files that the tests of one file share. */
export interface DaggerPlace {
  readonly engine: DaggerEngine;
  readonly scratch: Scratch;
  /** Options that lead to the engine. */
  options(dagger?: DaggerOptions, more?: SandboxOptions): SandboxOptions;
  /** A program that stands for the CLI: what it prints and does is the script's business. */
  fakeCli(name: string, script: string): string;
}

/** Prepares such a place before the tests of a file, and clears it away after them. */
export function useDaggerPlace(): DaggerPlace {
  let engine: DaggerEngine;
  let scratch: Scratch;
  beforeAll(async () => {
    scratch = createScratch();
    engine = await startDaggerEngine();
  });
  afterAll(async () => {
    await engine.close();
    scratch.remove();
  });
  return {
    get engine() {
      return engine;
    },
    get scratch() {
      return scratch;
    },
    options: (dagger = {}, more = {}) => ({
      ...more,
      dagger: { session: sessionOf(engine), sdk: daggerSdk, ...dagger },
    }),
    fakeCli(name, script) {
      const path = join(scratch.path, name);
      writeFileSync(path, `#!/bin/sh\n${script}\n`);
      chmodSync(path, 0o755);
      return path;
    },
  };
}

/** What names the session of an engine. */
export function sessionOf({ port, token }: DaggerEngine): { port: number; token: string } {
  return { port, token };
}
