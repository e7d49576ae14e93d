import { type EndpointChoice, findEndpoint } from "./endpoint.js";
import { Engine } from "./engine.js";

const engines = new Map<string, Engine>();

/** The client of an engine; one for all who name the same. */
export function engineOf(choice: EndpointChoice = {}): Engine {
  const endpoint = findEndpoint(choice);
  const key = JSON.stringify([endpoint.name, endpoint.tls]);
  const known = engines.get(key) ?? new Engine(endpoint);
  engines.set(key, known);
  return known;
}

/** What has to be written down to find an engine again in another process, whatever its environment names then. */
export function lastingChoice({ host, context, certPath }: EndpointChoice, { endpoint }: Engine): EndpointChoice {
  const certificates = certPath ?? (endpoint.tls ? process.env["DOCKER_CERT_PATH"] : undefined);
  // The certificates of a context are found by its name.
  const named =
    context ?? (host === undefined && !process.env["DOCKER_HOST"] ? process.env["DOCKER_CONTEXT"] : undefined);
  if (named) return { context: named };
  return { host: endpoint.name, ...(certificates && { certPath: certificates }) };
}
