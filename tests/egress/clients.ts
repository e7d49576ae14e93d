import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { NODE_24, RUNTIMES } from "../support/run/runtimes.js";
import { hasCommand } from "../support/walks/fresh-debian.js";

/** The folder of the programs that ask a server. */
export const PROGRAMS: string = fileURLToPath(new URL("./programs", import.meta.url));

/** The folder of the client in Rust, which the suite compiles before it starts. */
export const RUST: string = fileURLToPath(
  new URL("../../node_modules/.cache/glovebox/rust-client/debug", import.meta.url),
);

/** A program that asks for a page with the key of the variable TEST_KEY in a header, and prints the answer. */
export interface Client {
  /** Why it can't be run here; undefined when it can. */
  why(): string | undefined;
  /** With `size`, it sends as many zeros. */
  argv(url: string, size: number): string[];
  /** It sends bodies. */
  readonly posts: boolean;
  /** It asks the C library for the time, where another clock can be put in its place. */
  readonly hasClock: boolean;
}

const inPrograms = (name: string): string => join(PROGRAMS, name);

function needs(...commands: string[]): () => string | undefined {
  return () => {
    const missing = commands.filter((name) => !hasCommand(name));
    return missing.length === 0 ? undefined : `this machine has no ${missing.join(" and no ")}`;
  };
}

function runtime(name: string, options: string[] = []): Client {
  const found = name === NODE_24.name ? NODE_24 : RUNTIMES.find((each) => each.name === name);
  const { program = "", args = [] } = found ?? {};
  return {
    why: () => (existsSync(program) ? undefined : "its package is not installed: npm install --prefix tests/runtimes"),
    argv: (url, size) => [program, ...args, ...options, inPrograms("get.mjs"), url, String(size)],
    ...{ posts: true, hasClock: false },
  };
}

function curl(...flags: string[]): Client {
  const script = `exec curl -sS ${flags.join(" ")} -H "x-api-key: $TEST_KEY" "$1"`;
  return {
    why: needs("curl"),
    argv: (url, size) => ["sh", "-c", size > 0 ? `${script} --data-binary @zeros-${size}` : script, "sh", url],
    ...{ posts: true, hasClock: true },
  };
}

function java(kind: "connection" | "client", folder: () => string): Client {
  return {
    why: needs("java", "javac"),
    argv: (url, size) => ["java", "-cp", folder(), "Get", kind, url, String(size)],
    ...{ posts: true, hasClock: true },
  };
}

function rust(): Client {
  const program = join(RUST, "get-rust");
  return {
    why: () => (existsSync(program) ? undefined : "it is not compiled, from Debian's crates: npm run test:egress"),
    argv: (url, size) => [program, url, String(size)],
    ...{ posts: true, hasClock: true },
  };
}

/** The clients, by their names. `folder` has what was compiled. */
export function clientsIn(folder: () => string): Record<string, Client> {
  const program = (command: string, file: string): Client => ({
    why: needs(command),
    argv: (url, size) => [command, inPrograms(file), url, String(size)],
    ...{ posts: true, hasClock: true },
  });
  return {
    curl: curl(),
    "curl --http2": curl("--http2"),
    wget: {
      why: needs("wget"),
      argv: (url) => ["sh", "-c", 'exec wget -qO- --header "x-api-key: $TEST_KEY" "$1"', "sh", url],
      ...{ posts: false, hasClock: true },
    },
    Python: program("python3", "get.py"),
    "Node 20": program("node", "get.mjs"),
    "Node 24": runtime("Node 24"),
    Bun: runtime("Bun"),
    Deno: runtime("Deno"),
    "Java's HttpURLConnection": java("connection", folder),
    "Java's HttpClient": java("client", folder),
    "Rust, with native-tls": rust(),
    Go: {
      why: needs("go"),
      argv: (url, size) => [join(folder(), "get-go"), url, String(size)],
      ...{ posts: true, hasClock: false },
    },
  };
}

/** Compiles what has to be, where the compiler is there. */
export function compileClients(folder: string): void {
  const env = { PATH: process.env["PATH"], HOME: folder, GOCACHE: join(folder, "go-cache"), GO111MODULE: "off" };
  if (hasCommand("javac")) execFileSync("javac", ["-d", folder, inPrograms("Get.java")]);
  if (hasCommand("go")) {
    const args = ["build", "-o", join(folder, "get-go"), inPrograms("get.go")];
    execFileSync("go", args, { env: { ...env, CGO_ENABLED: "0" }, stdio: ["ignore", "ignore", "inherit"] });
  }
}
