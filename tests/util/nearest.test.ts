import { describe, expect, test } from "vitest";
import { nearestName } from "../../src/util/nearest.js";

describe("the nearest name", () => {
  test.each([
    ["bakend", ["branch", "backend"], "backend"],
    ["--bakend", ["--branch", "--backend"], "--backend"],
    ["excec", ["exec", "export"], "exec"],
    ["evn", ["env", "cwd"], "env"],
    ["lss", ["ls", "rm"], "ls"],
    ["ls", ["ls", "rm"], "ls"],
    ["Image", ["image"], "image"],
  ])("of %s among %s is %s", (name, known, nearest) => {
    expect(nearestName(name, known)).toBe(nearest);
  });

  test.each([
    ["cmd", ["cwd", "env"]],
    ["--cmd", ["--cwd"]],
    ["--cwd", ["--id", "--env"]],
    ["-v", ["--id", "--env"]],
    ["xyzzy", ["backend", "cwd"]],
  ])("of %s among %s is none of them", (name, known) => {
    expect(nearestName(name, known)).toBeUndefined();
  });
});
