import { describe, expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/commands/all.js";
import { findCommand } from "../../src/cli/commands/find-command.js";
import { commandHelp } from "../../src/cli/commands/help-text.js";
import { parseCommandLine } from "../../src/cli/commands/parse.js";
import { UsageError } from "../../src/cli/commands/usage-error.js";
import {
  parseCores,
  parseCount,
  parseDuration,
  parseEnv,
  parseLifetime,
  parseMount,
  parsePort,
  parseSecrets,
  parseSize,
} from "../../src/cli/commands/values.js";
import { createStyle } from "../../src/cli/terminal/style.js";

function complaint(work: () => unknown): { message: string; hint: string } {
  try {
    work();
  } catch (error) {
    if (error instanceof UsageError) return { message: error.message, hint: error.hint };
    throw error;
  }
  throw new Error("it was not refused");
}

const parse = (line: string) => {
  const [verb = "", ...args] = line.split(" ");
  return parseCommandLine(findCommand(verb), args);
};

describe("a command line", () => {
  it("is flags, then --, then a command that is not looked at", () => {
    const { flags, argv } = parse("exec --memory=1g -e A=1 --env B=2 --keep -- ls --json -- -x");
    expect(flags.text("memory")).toBe("1g");
    expect(flags.texts("env")).toEqual(["A=1", "B=2"]);
    expect([flags.has("keep"), flags.has("json")]).toEqual([true, false]);
    expect(argv).toEqual(["ls", "--json", "--", "-x"]);
  });

  it("has flags whose value may be left out, and then the next flag is not it", () => {
    const cache = (line: string) => [parse(line).flags.text("cache"), parse(line).flags.has("json")];
    expect(cache("reap --cache")).toEqual(["", false]);
    expect(cache("reap --cache --json")).toEqual(["", true]);
    expect(cache("reap --json --cache 5g")).toEqual(["5g", true]);
    expect(cache("reap --cache=5g")).toEqual(["5g", false]);
    expect(commandHelp(findCommand("reap"), createStyle({}, {}))).toContain("--cache [size]");
  });

  it.each([
    ["exec ls -la", 'exec needs "--" before the command', "glovebox exec -- ls -la"],
    ["exec --keep ls a;b", 'exec needs "--" before the command', "glovebox exec --keep -- ls 'a;b'"],
    ["exec", "exec needs a command", "glovebox exec -- echo hello"],
    ["exec --", "exec needs a command", "glovebox exec -- echo hello"],
    ["exec --memroy 1g -- ls", 'unknown flag "--memroy" of exec', "did you mean --memory?"],
    ["exec --xyzzy -- ls", 'unknown flag "--xyzzy" of exec', "glovebox help exec lists the flags"],
    ["exec --memory -- ls", "--memory needs a value", "--memory <size>: memory limit, for example 512m"],
    [
      "exec --repo --keep -- ls",
      "--repo needs a value",
      "--repo <path|url>: work on a worktree of this git repository",
    ],
    ["exec --json=yes -- ls", "--json takes no value", "write only --json"],
    ["exec --pids 1 --pids 2 -- ls", "--pids is given twice", "remove one of them"],
    ["ls everything", 'ls does not take "everything"', "glovebox help ls"],
    ["ls -- x", 'ls takes no command after "--"', "glovebox help ls"],
    ["restore abc123", "restore needs <id|name> <snapshot>", "glovebox help restore"],
    ["export abc123 a b c", 'export does not take "c"', "glovebox help export"],
    ["diff abc123 --name-statos", 'unknown flag "--name-statos" of diff', "did you mean --name-status?"],
    ["excec -- ls", 'unknown verb "excec"', "did you mean exec?"],
    ["cp abc:/a b", 'unknown verb "cp"', "glovebox export copies out of a sandbox, glovebox import into it"],
    ["upload", 'unknown verb "upload"', "glovebox export copies out of a sandbox, glovebox import into it"],
    ["ps", 'unknown verb "ps"', "glovebox ls lists the sandboxes"],
    ["destroy abc", 'unknown verb "destroy"', "glovebox rm removes a sandbox"],
    [
      "create",
      'unknown verb "create"',
      "glovebox exec --keep makes a sandbox that stays, glovebox exec --id opens it again",
    ],
    ["port abc 80", 'unknown verb "port"', "glovebox exec --publish makes a port of the sandbox reachable"],
    ["rmi abc", 'unknown verb "rmi"', "glovebox snapshots lists the snapshots, and deletes some"],
    ["frobnicate", 'unknown verb "frobnicate"', "glovebox --help lists the verbs"],
    ["--verison", 'unknown flag "--verison"', "did you mean --version?"],
    ["exec -v -- ls", 'unknown flag "-v" of exec', "glovebox --version prints the version"],
    ["exec --cmd ls -- ls", 'unknown flag "--cmd" of exec', "glovebox help exec lists the flags"],
    ["--json ls", '"--json" comes before the verb', "flags follow the verb; glovebox --help lists the verbs"],
  ])("%s is refused", (line, message, hint) => {
    expect(complaint(() => parse(line))).toEqual({ message, hint });
  });
});

describe("values", () => {
  it("of sizes", () => {
    expect(["512m", "1.5g", "2k", "7", "1GiB", "10MB", "3b"].map((text) => parseSize("--memory", text))).toEqual([
      536_870_912, 1_610_612_736, 2048, 7, 1_073_741_824, 10_485_760, 3,
    ]);
    for (const text of ["12q", "", "m", "-1m", "0", "1e9", "999999999t", "1 m", "0x10"]) {
      expect(complaint(() => parseSize("--memory", text)).message).toBe(`--memory takes a size, not "${text}"`);
    }
  });

  it("of times, which have a unit", () => {
    expect(["500ms", "30s", "1.5m", "1h"].map((text) => parseDuration("--timeout", text))).toEqual([
      500, 30_000, 90_000, 3_600_000,
    ]);
    expect(complaint(() => parseDuration("--timeout", "30")).hint).toBe("write --timeout 30s or --timeout 30ms");
    for (const text of ["", "s", "0s", "-1s", "25d", "1000h", "0.1ms"]) {
      expect(complaint(() => parseDuration("--timeout", text)).message).toBe(`--timeout takes a time, not "${text}"`);
    }
  });

  it("of lifetimes, which may be longer than a timer", () => {
    expect(["10m", "2h", "30d"].map((text) => parseLifetime("--ttl", text))).toEqual([
      600_000, 7_200_000, 2_592_000_000,
    ]);
    for (const text of ["31d", "0s", "1w"]) {
      expect(complaint(() => parseLifetime("--ttl", text)).message).toBe(`--ttl takes a time, not "${text}"`);
    }
  });

  it("of counts and cores", () => {
    expect([parseCount("--pids", "64"), parseCores("--cpus", "1.5"), parseCores("--cpus", ".5")]).toEqual([
      64, 1.5, 0.5,
    ]);
    for (const text of ["0", "-1", "1.5", "x", ""]) expect(() => parseCount("--pids", text)).toThrow(UsageError);
    for (const text of ["0", "-1", "x", "", "1e3"]) expect(() => parseCores("--cpus", text)).toThrow(UsageError);
  });

  it("of ports", () => {
    expect(parsePort("--publish", "65535")).toBe(65_535);
    for (const text of ["0", "65536", "-1", "80a", "", "1.5", "3000:80"]) {
      expect(() => parsePort("--publish", text)).toThrow(UsageError);
    }
  });

  it("of mounts", () => {
    const mount = (text: string) => parseMount("--mount", text);
    expect(mount("./a")).toEqual({ source: "./a", writable: false });
    expect(mount("/a:rw")).toEqual({ source: "/a", writable: true });
    expect(mount("/a:/b")).toEqual({ source: "/a", target: "/b", writable: false });
    expect(mount("/a:/b:rw")).toEqual({ source: "/a", target: "/b", writable: true });
    expect(mount("/a:/b:ro")).toEqual({ source: "/a", target: "/b", writable: false });
    for (const text of ["", ":/b", ":rw", "/a:rx", "/a:b", "/a:/b:rx", "/a:/b:", "/a:/b:rw,z"])
      expect(() => mount(text)).toThrow(UsageError);
  });

  it("a secret has hosts, or is known", () => {
    const known = { API_KEY: { hosts: ["a.test"], header: "x-key", from: { file: "/f" } } };
    const read = (...texts: string[]): unknown => parseSecrets("--secret", texts, known);
    expect(read("OTHER=b.test,c.test:8443")).toEqual({ OTHER: { hosts: ["b.test", "c.test:8443"] } });
    expect(read("API_KEY")).toEqual(known);
    expect(read("API_KEY=b.test")).toEqual({ API_KEY: { hosts: ["b.test"], from: { file: "/f" } } });
    expect(() => read("OTHER")).toThrow("it is not known which hosts this secret is for");
    expect(() => read("OTHER=a.test", "OTHER=b.test")).toThrow("--secret OTHER is given twice");
    // Who takes it for --env does not find the value in the error.
    expect(complaint(() => read("1BAD=hunter2secret")).message).not.toContain("hunter2");
  });

  it("what is no host of a secret is not shown: it may be the value", () => {
    const read = (...texts: string[]): unknown => parseSecrets("--secret", texts, {});
    const values = [
      "sk-live-0123456789abcdef",
      "ghp_0123/4567+89",
      "eyJhbGciOi.eyJzdWIiOi.c2lnbmF0",
      "SG.abc123.def456",
    ];
    for (const value of [...values, `${values[0]},header=x-key`, `a.test,${values[0]}`]) {
      const { message, hint = "" } = complaint(() => read(`MY_KEY=${value}`));
      expect(message).toBe('--secret MY_KEY: what follows "=" is not a list of hosts');
      expect(hint).toContain("the value itself is taken from the variable MY_KEY");
      expect(message + hint).not.toContain(value.slice(-10));
    }
    for (const hosts of [
      "*",
      "*.a.test",
      "https://a.test/",
      "a.test:8443",
      "[::1]:443",
      "::1",
      "1.2.3.4",
      "localhost",
      "gitlab:8443",
      "A.Test",
      "",
    ])
      expect(() => read(`MY_KEY=${hosts}`)).not.toThrow();
  });

  it("a secret may sign, be git's, log in, or be in one place only", () => {
    const known = { API_KEY: { hosts: ["a.test"], header: "x-key", from: { file: "/f" } } };
    const read = (text: string): unknown => Object.values(parseSecrets("--secret", [text], known))[0];
    expect(read("AWS_SECRET_ACCESS_KEY=s3.test,sign=aws")).toEqual({ hosts: ["s3.test"], sign: "aws" });
    expect(read("TOKEN=a.test,git=x-access-token,b.test")).toEqual({
      hosts: ["a.test", "b.test"],
      git: "x-access-token",
    });
    const url = "https://auth.test/token?a=b";
    expect(read(`LOGIN=a.test,login=${url},login=${url}2`)).toEqual({
      hosts: ["a.test"],
      login: { tokenUrls: [url, `${url}2`] },
    });
    expect(read("OTHER=a.test,in=query,prefix=sk-")).toEqual({ hosts: ["a.test"], in: "query", prefix: "sk-" });
    // Fields alone add to what is known.
    expect(read("API_KEY=prefix=sk-")).toEqual({ ...known.API_KEY, prefix: "sk-" });
    expect(() => read("OTHER=sign=aws")).toThrow("it is not known which hosts this secret is for");
    expect(complaint(() => read("AWS_SECRET_ACCESS_KEY")).hint).toContain(",sign=aws");
    expect(() => read("OTHER=a.test,header=")).toThrow("--secret OTHER: header is empty");
    expect(() => read("OTHER=a.test,git=a,git=b")).toThrow("--secret OTHER has git twice");
    const odd = complaint(() => read("OTHER=a.test,hunter2=secret"));
    expect(odd.message).toBe("--secret OTHER has a field that is none of header, in, prefix, sign, git, login");
    expect(`${odd.message} ${odd.hint}`).not.toContain("hunter2");
  });

  it("of variables, whose values are never shown", () => {
    expect(parseEnv("--env", ["A=1", "B=x=y", "C", "D="], { C: "here" })).toEqual({
      A: "1",
      B: "x=y",
      C: "here",
      D: "",
    });
    expect(complaint(() => parseEnv("--env", ["NOT_HERE"], {})).message).toContain("NOT_HERE");
    const refused = complaint(() => parseEnv("--env", ["1BAD=hunter2secret"], {}));
    expect(`${refused.message} ${refused.hint}`).toContain("1BAD");
    expect(`${refused.message} ${refused.hint}`).not.toContain("hunter2");
  });
});

describe("the help", () => {
  const plain = createStyle({}, {});

  it.each(COMMANDS.map((command) => [command.name, command] as const))(
    "of %s has every flag and examples that parse",
    (_, command) => {
      const text = commandHelp(command, plain);
      for (const { name } of command.flags) expect(text).toContain(`--${name}`);
      expect(command.examples.length).toBeGreaterThan(0);
      for (const [line] of command.examples) {
        const call = /glovebox ([^>)|]+)/.exec(line.replaceAll("<id>", "abc123"))?.[1]?.trim().split(/\s+/) ?? [];
        expect(() => parseCommandLine(findCommand(call[0] ?? ""), call.slice(1))).not.toThrow();
      }
    },
  );
});

describe("colours", () => {
  it("are there on a terminal, and not with NO_COLOR, TERM=dumb or elsewhere", () => {
    expect(createStyle({ isTTY: true }, {}).bad("x")).toBe("\x1b[31mx\x1b[39m");
    expect(createStyle({ isTTY: true }, { NO_COLOR: "1" }).bad("x")).toBe("x");
    expect(createStyle({ isTTY: true }, { TERM: "dumb" }).bad("x")).toBe("x");
    expect(plainOf({})).toBe("x");
  });
});

function plainOf(output: { isTTY?: boolean }): string {
  return createStyle(output, {}).bad("x");
}

describe("the verbs", () => {
  it("all have --json but the one that is a terminal, and all have examples", () => {
    const without = COMMANDS.filter(({ flags }) => !flags.some(({ name }) => name === "json"));
    expect(without.map(({ name }) => name)).toEqual(["shell"]);
    expect(COMMANDS.filter(({ examples }) => examples.length === 0)).toEqual([]);
  });
});
