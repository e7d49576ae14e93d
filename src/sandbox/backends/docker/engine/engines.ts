import { type EndpointChoice, findEndpoint } from "./endpoint.js";
import { Engine } from "./engine.js";

const engines = new Map<string, Engine>();

/** The client of an engine, shared by everyone who names the same engine. */
export function engineOf(choice: EndpointChoice = {}): Engine {
  const endpoint = findEndpoint(choice);
  const key = JSON.stringify([endpoint.name, endpoint.tls]);
  const known = engines.get(key) ?? new Engine(endpoint);
  engines.set(key, known);
  return known;
}

/** What to record to find this engine again from another process, whatever its environment is. */
export function lastingChoice({ host, context, certPath }: EndpointChoice, { endpoint }: Engine): EndpointChoice {
  const certificates = certPath ?? (endpoint.tls ? process.env["DOCKER_CERT_PATH"] : undefined);
  // A context also names its certificates.
  const named =
    context ?? (host === undefined && !process.env["DOCKER_HOST"] ? process.env["DOCKER_CONTEXT"] : undefined);
  if (named) return { context: named };
  return { host: endpoint.name, ...(certificates && { certPath: certificates }) };
}
