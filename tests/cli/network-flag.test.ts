import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { SandboxError } from "../../contracts/errors.js";
import { UsageError } from "../../src/cli/commands.js";
import { readNetwork } from "../../src/cli/network-flag.js";
import { createScratch, type Scratch } from "../support/scratch.js";

let scratch: Scratch;

beforeAll(() => {
  scratch = createScratch();
});
afterAll(() => scratch.remove());

function file(text: string): string {
  const path = join(scratch.path, "rules.yaml");
  writeFileSync(path, text);
  return path;
}

describe("--network", () => {
  test("none and full", async () => {
    expect([await readNetwork("none"), await readNetwork("full")]).toEqual(["none", "full"]);
  });

  test("a list of names", async () => {
    expect(await readNetwork("allow=a.com,plain://b.org:22")).toEqual({ allow: ["a.com", "plain://b.org:22"] });
  });

  test("a list of rules, and what it denies", async () => {
    expect(await readNetwork("allow=GET+POST a.com/v1/**,*.b.org,deny=x.b.org,git-push y.b.org,allow=c.org")).toEqual({
      allow: [{ host: "a.com", methods: ["GET", "POST"], paths: ["/v1/**"] }, "*.b.org", "c.org"],
      deny: [{ host: "y.b.org", git: "push" }, "x.b.org"],
    });
  });

  test("a file, and more beside it", async () => {
    const path = file("allow:\n  - a.com\n  - host: b.org\n    methods: [GET]\ndeny: [c.org]\n");
    const rules = { allow: ["a.com", { host: "b.org", methods: ["GET"] }], deny: ["c.org"] };
    expect(await readNetwork(`@${path}`)).toEqual(rules);
    expect(await readNetwork(`@${path},allow=host-loopback:5432`)).toEqual({
      ...rules,
      allow: [...rules.allow, "host-loopback:5432"],
    });
    expect(await readNetwork(`@${file("none\n")}`)).toBe("none");
  });

  test.each(["", "ful", "allow=", "allow=a,,b", "a.com", "deny=a.com,"])("refuses %j", async (text) => {
    await expect(readNetwork(text)).rejects.toThrow(UsageError);
  });

  test("refuses a file that is missing, or no YAML, or no rules, and names it", async () => {
    await expect(readNetwork("@/nowhere/rules.yaml")).rejects.toThrow(/@\/nowhere\/rules.yaml can't be read: ENOENT/);
    await expect(readNetwork(`@${file("allow: [")}`)).rejects.toThrow(UsageError);
    await expect(readNetwork(`@${file("allow: [{ host: a.com, metods: [GET] }]")}`)).rejects.toMatchObject({
      message: expect.stringContaining('Unknown option "metods"'),
      hint: 'did you mean "methods"?',
    });
    await expect(readNetwork(`@${file("full")},allow=a.com`)).rejects.toThrow(UsageError);
  });

  test("refuses a file that opens a port of the host: only the flag itself does", async () => {
    const error: unknown = await readNetwork(`@${file("allow: ['host-loopback:5432']")}`).catch(
      (reason: unknown) => reason,
    );
    expect(error).toBeInstanceOf(SandboxError);
    expect(error).toMatchObject({ hint: expect.stringContaining("--network allow=host-loopback:<port>") });
  });
});
