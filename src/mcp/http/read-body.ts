import type { IncomingMessage } from "node:http";
import { SandboxError } from "../../../contracts/errors.js";

/** Reads the body of a request, up to a limit. */
export async function readBody(request: IncomingMessage, most: number): Promise<Buffer> {
  const tooLong = (): SandboxError => new SandboxError("limit_exceeded", `The request has more than ${most} bytes`);
  if (Number(request.headers["content-length"] ?? 0) > most) throw tooLong();
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    length += piece.length;
    if (length > most) throw tooLong();
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
