import { SandboxError } from "../../contracts/errors.js";
import {
  arrayOf,
  type Check,
  checkEnv,
  checkOptions,
  checkPath,
  checkText,
  invalidArgument,
  oneOf,
  type Shape,
} from "../util/checks.js";
import type { BuildStage, ImageSpec, MultiStageBuildImageSpec } from "./types.js";

const PART = "[a-z0-9]+(?:(?:\\.|_{1,2}|-+)[a-z0-9]+)*";
const HOST = "(?:[A-Za-z0-9-]+(?:\\.[A-Za-z0-9-]+)*|\\[[0-9a-fA-F:]+\\])(?::[0-9]{1,5})?";
const REFERENCE = new RegExp(
  `^(?:${HOST}/)?${PART}(?:/${PART})*(?::([A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(@sha256:[0-9a-f]{64})?$`,
);
const MAX_REFERENCE = 400;

/** Refuses what no registry and no engine would take for the name of an image. */
export const checkTag: Check = (value, name) => {
  if (typeof value !== "string" || value.length > MAX_REFERENCE || !REFERENCE.test(value)) {
    throw invalidArgument(name, "the name of an image, such as registry:5000/name:tag", value);
  }
};

const checkBuiltTag: Check = (value, name) => {
  checkTag(value, name);
  if ((value as string).includes("@")) throw invalidArgument(name, "a tag to give the image, not a digest", value);
};

const checkRelative: Check = (value, name) => {
  checkPath(value, name);
  if (value.startsWith("/") || value.split("/").includes("..")) {
    throw new SandboxError("path_confinement", `${name} "${value}" is outside of the context`);
  }
};

const built: readonly (readonly [string, Check])[] = [
  ["tag", checkBuiltTag],
  ["contextPath", checkPath],
  ["dockerfilePath", checkRelative],
  ["buildArgs", checkEnv],
];
const stageShape: Shape = new Map([
  ...built,
  ["parentTag", checkTag] as const,
  ["cacheKey", checkText as Check] as const,
]);

const checkStage: Check = (value, name) => {
  checkOptions(value, stageShape, name);
  require(value, name, "tag", "contextPath");
};

const checkKind = oneOf("pull", "build", "multi-stage");
const shapes: Readonly<Record<ImageSpec["type"], Shape>> = {
  pull: new Map([["type", checkKind] as const, ["tag", checkTag] as const]),
  build: new Map([["type", checkKind] as const, ...built]),
  "multi-stage": new Map([
    ["type", checkKind] as const,
    ["stages", arrayOf(checkStage)] as const,
    ["finalTag", checkBuiltTag] as const,
  ]),
};

/** Refuses an image that could not be pulled or built, as far as its description tells. */
export const checkImageSpec: Check = (value, name) => {
  if (typeof value !== "object" || value === null) throw invalidArgument(name, "an object with a type", value);
  const { type } = value as { type?: unknown };
  checkKind(type, `${name}.type`);
  checkOptions(value, shapes[type as ImageSpec["type"]], name);
  if (type === "pull") require(value, name, "tag");
  if (type === "build") require(value, name, "tag", "contextPath");
  if (type === "multi-stage") {
    require(value, name, "stages", "finalTag");
    checkChain(value as MultiStageBuildImageSpec, name);
  }
};

function require(value: unknown, name: string, ...fields: readonly string[]): void {
  for (const field of fields) {
    const found = (value as Record<string, unknown>)[field];
    if (found === undefined) throw invalidArgument(`${name}.${field}`, "a value", found);
  }
}

function checkChain({ stages, finalTag }: MultiStageBuildImageSpec, name: string): void {
  const tags = new Map<string, BuildStage>();
  for (const stage of stages) {
    if (tags.has(stage.tag)) {
      throw new SandboxError("invalid_argument", `${name}.stages builds the image "${stage.tag}" twice`);
    }
    tags.set(stage.tag, stage);
  }
  if (!tags.has(finalTag)) {
    throw new SandboxError("invalid_argument", `${name}.finalTag "${finalTag}" is the tag of no stage`, {
      hint: `stages: ${[...tags.keys()].join(", ") || "none"}`,
    });
  }
}
