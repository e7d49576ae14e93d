import { expect, test } from "vitest";
import * as root from "../../src/index.js";
import * as docker from "../../src/sandbox/docker.js";
import * as kit from "../../src/testing.js";

test("the root exports nothing of the conformance kit", () => {
  const names = Object.keys(root);
  expect(names).toContain("openSandbox");
  expect(names.filter((name) => name in kit || /conformance/i.test(name))).toEqual([]);
});

test("glovebox/sandbox/docker exports the backend only", () => {
  expect(Object.keys(docker).sort()).toEqual(["createDockerSandbox", "docker"]);
});
