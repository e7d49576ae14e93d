import { randomBytes } from "node:crypto";
import { lstatSync, renameSync, unlinkSync, writeFileSync } from "node:fs";
import { basename, dirname, join, resolve } from "node:path";
import { SandboxError } from "../../contracts/errors.js";
import type { BlockedAnswer, BlockedRequest } from "../../contracts/types.js";
import { countOf } from "../util/count-of.js";
import type { Screen } from "./terminal.js";

interface LearnedHost {
  readonly host: string;
  readonly port: number;
  readonly methods: Set<string>;
  /** It leads to a private or local address, and stayed blocked. */
  isLeftOut: boolean;
}

/** The hosts that a command asks for, to be written down as network rules. */
export class LearnedHosts {
  readonly #path: string;
  readonly #replaces: boolean;
  readonly #seen = new Map<string, LearnedHost>();

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
    const known = this.#seen.get(place) ?? { host, port, methods: new Set<string>(), isLeftOut: false };
    if (method !== undefined) known.methods.add(method);
    this.#seen.set(place, known);
    return "allow-once";
  }

  /** Learns from a warning of the sandbox which names were blocked after all. */
  hear(warning: string): void {
    const [, place] = /^blocked (\S+): its address is not public$/.exec(warning) ?? [];
    for (const each of this.#seen.values()) if (placeOf(each) === place) each.isLeftOut = true;
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
    const left = [...this.#seen.values()].filter(({ isLeftOut }) => isLeftOut).length;
    const what = count === 0 ? "the command asked for no host" : `it asked for ${countOf(count, "host")}`;
    const less =
      left === 0
        ? ""
        : `, of which ${left} ${left === 1 ? "has" : "have"} no public address and ${left === 1 ? "is" : "are"} left out`;
    await screen.printNote(`${what}${less}; read ${this.#path}, then use it with --network @${this.#path}`);
  }

  #document(): string {
    const entries = [...this.#seen.values()].sort((a, b) => a.host.localeCompare(b.host, "en") || a.port - b.port);
    const lines = entries
      .filter(({ isLeftOut }) => !isLeftOut)
      .map((entry) => {
        const seen = entry.methods.size === 0 ? "" : ` # ${[...entry.methods].sort().join(", ")}`;
        return `  - "${placeOf(entry)}"${seen}`;
      });
    const left = entries
      .filter(({ isLeftOut }) => isLeftOut)
      .map(({ host, port }) => `#  - { host: "${host}", port: ${port}, private: true }`);
    const head = "# What a command asked for, written by glovebox exec --learn. Read it before you use it.";
    const blocked =
      left.length === 0
        ? []
        : ["# Blocked: no public address. If one is of your own network, this allows it:", ...left];
    return `${[head, ...(lines.length === 0 ? ["allow: []"] : ["allow:", ...lines]), ...blocked].join("\n")}\n`;
  }

  #exists(): SandboxError {
    return new SandboxError("conflict", `--learn: ${this.#path} already exists`, {
      retryable: false,
      hint: "name another file, or add --force",
    });
  }
}

function placeOf({ host, port }: LearnedHost): string {
  return `${host.includes(":") ? `[${host}]` : host}:${port}`;
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
