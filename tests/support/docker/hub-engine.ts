import { type EngineReply, startEngineProxy } from "./engine-proxy.js";

/** A way to an engine that has never pulled one image. Nothing is pulled: another image of the engine takes its place, or the registry has none. */
export interface HubEngine {
  readonly host: string;
  /** What was pulled, as `name:tag`. */
  readonly pulled: string[];
  close(): void;
}

/** Starts a way to a real engine on which pulling `image` brings the content of `content`, or fails if that is undefined. */
export async function startHubEngine(
  host: string,
  folder: string,
  { image, content }: { image: string; content: string | undefined },
): Promise<HubEngine> {
  const pulled: string[] = [];
  const proxy = await startEngineProxy(host, folder, (request): EngineReply => {
    const url = new URL(request.path, "http://engine");
    if (url.pathname === "/images/create") {
      pulled.push(`${url.searchParams.get("fromImage")}:${url.searchParams.get("tag")}`);
      if (content === undefined)
        return { status: 500, answer: JSON.stringify({ message: "no route to the registry" }) };
      return { status: 200, answer: `${JSON.stringify({ status: "Pull complete" })}\n` };
    }
    if (url.pathname !== `/images/${image}/json`) return request;
    if (pulled.length === 0 || content === undefined) return { status: 404, answer: '{"message":"No such image"}' };
    return { ...request, path: `/images/${content}/json` };
  });
  return { ...proxy, pulled };
}
