import { describe, expect, test } from "vitest";
import { findCommand } from "../../src/cli/commands/find-command.js";
import { nameFlags } from "../../src/cli/flag-names.js";

const EXEC = findCommand("exec").flags;

describe("an error of the library, on the command line", () => {
  test.each([
    ['Option branch ("x") needs the option repo', "--branch x needs --repo"],
    ['Option branch ("a b") needs the option repo', '--branch ("a b") needs --repo'],
    ['Option ifExists ("reopen") needs the option name', "--reopen needs --name"],
    ['Option baseDir ("/tmp") does not go together with repo', "--base-dir /tmp does not go together with --repo"],
    ["The docker backend needs the option image", "The docker backend needs --image"],
    [
      'Invalid repo "/no/leave branch out" — no such directory',
      'Invalid --repo "/no/leave branch out" — no such directory',
    ],
    ['Invalid mounts[2].source "/x" — no such file', 'Invalid source of --mount "/x" — no such file'],
    ['Invalid network.allow[0]: expected a name, got ":"', 'Invalid name of --network: expected a name, got ":"'],
    ["Invalid limits.memory: expected a number, got 1", "Invalid --memory: expected a number, got 1"],
    ["Invalid labels.team: 300 characters, at most 255", "Invalid --label team: 300 characters, at most 255"],
    ['Invalid labels."a b": the key must match', 'Invalid --label "a b": the key must match'],
    ['open that sandbox with id: "w" or ifExists: "reopen"', "open that sandbox with --id w or --reopen"],
    ["this call does not set it: give env again", "this call does not set it: give --env again"],
    ["Invalid labels: the key must match", "Invalid --label: the key must match"],
    ['image: "debian:bookworm-slim"', "--image debian:bookworm-slim"],
    ['set isolation: "none" to run commands', "--isolation none to run commands"],
    ["use keep: true, or leave limits.disk out", "use --keep, or leave --disk out"],
    ["add name, or leave ifExists out", "add --name, or leave --reopen out"],
    [
      "omit image: the snapshot contains the files of its own",
      "omit --image: the snapshot contains the files of its own",
    ],
    ["omit backend: the id is enough", "omit --backend: the id is enough"],
    [
      'Sandbox "a" was made with another workDir than this call gives',
      'Sandbox "a" was made with another --work-dir than this call gives',
    ],
    [
      'Sandbox "a" was made with other labels than this call gives',
      'Sandbox "a" was made with other --label than this call gives',
    ],
    [
      "leave paths out: file calls reach the work directory only",
      "leave --paths out: file calls reach the work directory only",
    ],
    ["choose another name, or remove the sandbox", "choose another name, or remove the sandbox"],
    ["the image has no shell", "the image has no shell"],
  ])("%s", (text, shown) => {
    expect(nameFlags(text, EXEC)).toBe(shown);
  });

  test("names the directory of a batch", () => {
    const [batch, other] = [findCommand("batch").flags, EXEC].map((flags) =>
      nameFlags("name another directory with out, or leave it out", flags),
    );
    expect(batch).toBe("name another directory with --out, or leave it out");
    expect(other).toBe("name another directory with out, or leave it out");
  });

  test("keeps an option that the verb has no flag for", () => {
    expect(nameFlags('Option branch ("x") needs the option repo', findCommand("ls").flags)).toBe(
      'Option branch ("x") needs the option repo',
    );
  });
});
