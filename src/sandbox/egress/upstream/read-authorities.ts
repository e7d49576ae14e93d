import { X509Certificate } from "node:crypto";
import { readFileSync, statSync } from "node:fs";
import { isAbsolute } from "node:path";
import { SandboxError } from "../../../../contracts/errors.js";

const MAX_BYTES = 4 << 20;
const BLOCK = /-----BEGIN CERTIFICATE-----[\sA-Za-z0-9+/=]+-----END CERTIFICATE-----/g;

/** Reads the certificates of a PEM file; `invalid_argument` if it has none that can be read. */
export function readAuthorities(path: string, name = "network.ca"): string[] {
  const refuse = (why: string, cause?: unknown): SandboxError =>
    new SandboxError("invalid_argument", `Invalid ${name} ("${path}"): ${why}`, {
      cause,
      hint: "give the absolute path of a PEM file with the certificates of your organisation's authorities",
    });
  if (!isAbsolute(path)) throw refuse("it is not an absolute path");
  let text: string;
  try {
    const { size } = statSync(path);
    if (size > MAX_BYTES) throw refuse(`it has more than ${MAX_BYTES} bytes`);
    text = readFileSync(path, "latin1");
  } catch (error) {
    if (error instanceof SandboxError) throw error;
    throw refuse(`it can't be read: ${(error as NodeJS.ErrnoException).code ?? "unknown"}`, error);
  }
  if (text.includes("PRIVATE KEY-----")) throw refuse("it has a private key in it, which must stay where it is");
  const blocks = text.match(BLOCK) ?? [];
  if (blocks.length === 0) throw refuse("it has no certificate in it");
  blocks.forEach((block, at) => {
    try {
      new X509Certificate(block);
    } catch (error) {
      throw refuse(`its certificate number ${at + 1} can't be read`, error);
    }
  });
  return blocks;
}
