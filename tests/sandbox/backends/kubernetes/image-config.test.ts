import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { readImageConfig } from "../../../../src/sandbox/backends/kubernetes/registry/image-config.js";
import { placeOfImage } from "../../../../src/sandbox/backends/kubernetes/registry/registry-client.js";
import { ImageRegistry } from "../../../support/kubernetes/image-registry.js";
import { expectRefused } from "../../../support/refused.js";
import { createScratch, type Scratch } from "../../../support/scratch.js";

let scratch: Scratch;
let registry: ImageRegistry;
const never = new AbortController().signal;
beforeEach(async () => {
  scratch = createScratch();
  vi.stubEnv("DOCKER_CONFIG", scratch.path);
  registry = await ImageRegistry.start();
});
afterEach(async () => {
  await registry[Symbol.asyncDispose]();
  vi.unstubAllEnvs();
  scratch.remove();
});

test.each([
  ["postgres", { registry: "docker.io", repository: "library/postgres", reference: "latest" }],
  ["me/app:2", { registry: "docker.io", repository: "me/app", reference: "2" }],
  ["docker.io/me/app", { registry: "docker.io", repository: "me/app", reference: "latest" }],
  ["host:5000/a/b:1", { registry: "host:5000", repository: "a/b", reference: "1" }],
  ["ghcr.io/a/b:1@sha256:ab", { registry: "ghcr.io", repository: "a/b", reference: "sha256:ab" }],
])("the name %s is taken apart as Docker does", (name, place) => {
  expect(placeOfImage(name)).toEqual(place);
});

test("an image says what it runs, for the architecture of the nodes", async () => {
  const image = registry.add("team/db", {
    Entrypoint: ["/entry.sh"],
    Cmd: ["serve"],
    Healthcheck: { Test: ["CMD-SHELL", "ping"] },
  });
  expect(await readImageConfig(image, "amd64", never)).toEqual({
    entrypoint: ["/entry.sh"],
    cmd: ["serve"],
    healthcheck: { argv: ["/bin/sh", "-c", "ping"] },
    volumes: [],
    user: "",
  });
  expect(await readImageConfig(image, "arm64", never)).toMatchObject({ entrypoint: [], cmd: ["of-another-machine"] });
  expect(registry.asked.filter((line) => line.includes(" as "))).toEqual([]);
});

test.each([
  ["1234:2345", "1234:2345"],
  ["1234", ""],
  ["postgres", ""],
])("the user %s of an image is given to a pod only with a group, and by numbers", async (User, user) => {
  expect(await readImageConfig(registry.add("team/db", { User }), "amd64", never)).toMatchObject({ user });
});

test("a token is fetched where the registry wants one, with the user's login if there is one", async () => {
  registry.wantsToken = true;
  const image = registry.add("team/db", { Cmd: ["serve"] });
  expect(await readImageConfig(image, "amd64", never)).toMatchObject({ cmd: ["serve"] });
  registry.login = "ali:open-sesame";
  const refused = readImageConfig(image, "amd64", never);
  await expectRefused(refused, "unauthenticated", "401");
  expect(await refused.catch((error) => error.hint)).toBe(`docker login ${registry.host}`);
  const auths = { [registry.host]: { auth: Buffer.from("ali:open-sesame").toString("base64") } };
  mkdirSync(scratch.path, { recursive: true });
  writeFileSync(join(scratch.path, "config.json"), JSON.stringify({ auths }));
  expect(await readImageConfig(image, "amd64", never)).toMatchObject({ cmd: ["serve"] });
});

test("what is not what its digest says is not believed", async () => {
  const image = registry.add("team/db", { Cmd: ["serve"] });
  registry.spoil();
  await expectRefused(readImageConfig(image, "amd64", never), "tampered", image);
});

test.each([
  [404, "not_found"],
  [403, "unauthenticated"],
  [500, "unavailable"],
] as const)("an answer %i is %s, with the image's name", async (status, code) => {
  const image = registry.add("team/db", { Cmd: ["serve"] });
  registry.nextStatus = status;
  await expectRefused(readImageConfig(image, "amd64", never), code, image, String(status));
});

test("a registry that does not answer is unavailable", async () => {
  const image = registry.add("team/db", { Cmd: ["serve"] });
  await registry[Symbol.asyncDispose]();
  await expectRefused(readImageConfig(image, "amd64", never), "unavailable", image, "can't be reached");
});
