import { startEngineProxy } from "./engine-proxy.js";

/** A way to an engine that ignores limits without a word, as Podman without root does: they are cut out of each request. */
export async function startCarelessEngine(host: string, folder: string): Promise<{ host: string; close(): void }> {
  return await startEngineProxy(host, folder, (request) => {
    if (!request.path.startsWith("/containers/create")) return request;
    const config = JSON.parse(request.body.toString()) as { HostConfig: Record<string, unknown> };
    for (const name of ["Memory", "MemorySwap", "PidsLimit"]) delete config.HostConfig[name];
    return { ...request, body: Buffer.from(JSON.stringify(config)) };
  });
}
