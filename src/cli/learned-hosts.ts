import { randomBytes } from "node:crypto";
import { lstatSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { SandboxError } from "../../contracts/errors.js";
import type { BlockedAnswer, BlockedRequest } from "../../contracts/types.js";
import type { Screen } from "./terminal.js";

/** The hosts that a command asks for, to be written down as network rules. */
export class LearnedHosts {
  readonly #path: string;
  readonly #replaces: boolean;
  readonly #seen = new Map<string, { host: string; port: number; methods: Set<string> }>();

  /** Throws `conflict` if the file is there and must not be replaced, before anything has run. */
  constructor(path: string, replaces: boolean) {
    this.#path = resolve(path);
    this.#replaces = replaces;
    const found = lstatSync(this.#path, { throwIfNoEntry: false });
    if (found?.isDirectory()) throw new SandboxError("invalid_argument", `--learn ${path} is a directory`);
    if (found !== undefined && !replaces) throw this.#exists();
  }

  /** Lets it pass, and remembers it. */
  add({ host, port, method }: BlockedRequest): BlockedAnswer {
    const place = `${host} ${port}`;
    const known = this.#seen.get(place) ?? { host, port, methods: new Set<string>() };
    if (method !== undefined) known.methods.add(method);
    this.#seen.set(place, known);
    return "allow-once";
  }

  /** Writes the rules. A file that came there meanwhile is not replaced, and a link is never followed. */
  async write(screen: Screen): Promise<void> {
    const text = this.#document();
    try {
      if (this.#replaces) replaceFile(this.#path, text);
      else writeFileSync(this.#path, text, { flag: "wx", mode: 0o644 });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "EEXIST") throw this.#exists();
      throw error;
    }
    const count = this.#seen.size;
    const what = count === 0 ? "the command asked for no host" : `it asked for ${count} host${count === 1 ? "" : "s"}`;
    await screen.printNote(`${what}; read ${this.#path}, then use it with --network @${this.#path}`);
  }

  #document(): string {
    const entries = [...this.#seen.values()].sort((a, b) => a.host.localeCompare(b.host, "en") || a.port - b.port);
    const lines = entries.map(({ host, port, methods }) => {
      const name = host.includes(":") ? `[${host}]` : host;
      const seen = methods.size === 0 ? "" : ` # ${[...methods].sort().join(", ")}`;
      return `  - "${name}:${port}"${seen}`;
    });
    const head = "# What a command asked for, written by glovebox exec --learn. Read it before you use it.";
    return `${[head, ...(lines.length === 0 ? ["allow: []"] : ["allow:", ...lines])].join("\n")}\n`;
  }

  #exists(): SandboxError {
    return new SandboxError("conflict", `--learn: ${this.#path} already exists`, {
      retryable: false,
      hint: "name another file, or add --force",
    });
  }
}

function replaceFile(path: string, text: string): void {
  const temporary = join(dirname(path), `.${basename(path)}.${randomBytes(6).toString("hex")}.tmp`);
  try {
    writeFileSync(temporary, text, { flag: "wx", mode: 0o644 });
    renameSync(temporary, path);
  } catch (error) {
    try {
      unlinkSync(temporary);
    } catch {
      // It was not made.
    }
    throw error;
  }
}
