import type { Rewriting } from "../../forward.js";
import { Refusal } from "../../refusal.js";
import type { OutgoingBody } from "../../request-body.js";
import { type AwsKeys, signAnew } from "./aws-signature.js";

/** What signs the requests of one sandbox. */
export interface AwsSigner {
  /** What changes in one request by this method. One that is not signed with the placeholder's keys changes as `otherwise` says, and so do answers. */
  changesOf(method: string, otherwise: Rewriting, onSigned?: () => void): Rewriting;
}

/** The most bytes of a body whose hash the program did not send: the most that DynamoDB accepts. */
const MOST_OF_ONE = 16 << 20;
/** And of all of them together, at any time. */
const MOST_OF_ALL = 64 << 20;

/** Makes what signs requests with the real keys that were signed with the placeholder's. */
export function createAwsSigner(opts: { placeholderId: string; keys(): Promise<AwsKeys>; now?(): number }): AwsSigner {
  const { placeholderId, keys, now = Date.now } = opts;
  let reserved = 0;
  return {
    changesOf(method, otherwise, onSigned) {
      let own = 0;
      const read = async (body: OutgoingBody): Promise<Buffer> => {
        const { framing } = body;
        const expected = framing === "chunked" ? MOST_OF_ONE : Math.min(framing, MOST_OF_ONE);
        if (reserved + expected > MOST_OF_ALL) {
          throw new Refusal(503, "the proxy must read this body to sign it, and reads too many others now");
        }
        own = expected;
        reserved += own;
        return await body.whole(MOST_OF_ONE);
      };
      return {
        async ofRequest({ path, headers }, body) {
          const framing = body?.framing ?? 0;
          const sized = framing === "chunked" ? headers : [...headers, ["Content-Length", `${framing}`] as const];
          const signed = await signAnew(
            { method, path, headers: sized, body: async () => (body ? await read(body) : Buffer.alloc(0)) },
            placeholderId,
            keys,
            now(),
          );
          if (signed === undefined) return await otherwise.ofRequest({ path, headers }, body);
          onSigned?.();
          return { path, headers: signed };
        },
        ofHeaders: (received) => otherwise.ofHeaders(received),
        ofBody: (received) => otherwise.ofBody(received),
        ofFrames: () => otherwise.ofFrames?.(),
        ended() {
          reserved -= own;
          own = 0;
          otherwise.ended?.();
        },
      };
    },
  };
}
