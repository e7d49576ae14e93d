import { AsyncLocalStorage } from "node:async_hooks";
import { request } from "node:http";

const cancelling = new AsyncLocalStorage<AbortSignal>();

/** Runs work whose requests end when the signal is aborted; an engine ends what nobody waits for. */
export function cancellable<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  return cancelling.run(signal, work);
}

/** Posts a query and waits as long as it takes. The platform's fetch gives up after five minutes; the SDK's can't be cancelled. */
export function patientFetch(input: string | URL | Request, init: RequestInit = {}): Promise<Response> {
  const url = new URL(input instanceof Request ? input.url : input);
  const headers = Object.fromEntries(new Headers(init.headers));
  const signal = cancelling.getStore();
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      { method: init.method ?? "POST", headers, agent: false, ...(signal !== undefined && { signal }) },
      (incoming) => {
        const chunks: Buffer[] = [];
        incoming.on("data", (chunk: Buffer) => chunks.push(chunk));
        incoming.on("error", reject);
        incoming.on("end", () => {
          const type = incoming.headers["content-type"] ?? "application/json";
          resolve(
            new Response(Buffer.concat(chunks), {
              status: incoming.statusCode ?? 502,
              headers: { "content-type": type },
            }),
          );
        });
      },
    );
    outgoing.on("error", reject);
    outgoing.end(init.body as string);
  });
}
