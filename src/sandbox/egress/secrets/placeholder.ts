import { randomInt } from "node:crypto";

const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const LENGTH = 32;

/** Makes a text that stands for a secret in one opening of a sandbox. No encoding of URLs, JSON or shells changes it. */
export function makePlaceholder(prefix = ""): string {
  return `${prefix}glovebox${Array.from({ length: LENGTH }, () => LETTERS[randomInt(LETTERS.length)]).join("")}`;
}
