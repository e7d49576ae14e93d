import { type Check, invalidArgument } from "../../../../util/checks.js";

const PART = "[a-z0-9]+(?:(?:\\.|_{1,2}|-+)[a-z0-9]+)*";
const HOST = "(?:[A-Za-z0-9-]+(?:\\.[A-Za-z0-9-]+)*|\\[[0-9a-fA-F:]+\\])(?::[0-9]{1,5})?";
const NAME = new RegExp(
  `^(?:${HOST}/)?${PART}(?:/${PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[0-9a-f]{64})?$`,
);
const ID = /^sha256:[0-9a-f]{64}$/;
const MAX_LENGTH = 400;

/** Refuses what no registry and no engine would take for an image. */
export const checkImageName: Check = (value, name) => {
  if (typeof value === "string" && value.length <= MAX_LENGTH && (NAME.test(value) || ID.test(value))) return;
  throw invalidArgument(name, "the name of an image, such as debian:bookworm-slim", value);
};
