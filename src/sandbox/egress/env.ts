import { type TrustPaths, trustEnv } from "./authority.js";

const NO_PROXY = "localhost,127.0.0.1,::1";

/** The variables of a sandbox with a proxy at this port of its own loopback, and of one whose programs must trust an authority. */
export function egressEnv(port: number, trust: TrustPaths | undefined): Record<string, string> {
  const [proxied, trusting] = [proxyEnv(port), trust === undefined ? {} : trustEnv(trust)];
  const java = [proxied, trusting].flatMap(({ JAVA_TOOL_OPTIONS }) => JAVA_TOOL_OPTIONS ?? []);
  return { ...proxied, ...trusting, JAVA_TOOL_OPTIONS: java.join(" ") };
}

/** The variables that make programs in the sandbox use the proxy at this port of its own loopback. */
export function proxyEnv(port: number): Record<string, string> {
  const url = `http://127.0.0.1:${port}`;
  const java = ["http", "https"].flatMap((scheme) => [
    `-D${scheme}.proxyHost=127.0.0.1`,
    `-D${scheme}.proxyPort=${port}`,
  ]);
  return {
    HTTP_PROXY: url,
    http_proxy: url,
    HTTPS_PROXY: url,
    https_proxy: url,
    NO_PROXY,
    no_proxy: NO_PROXY,
    NODE_USE_ENV_PROXY: "1",
    JAVA_TOOL_OPTIONS: [...java, "-Dhttp.nonProxyHosts=localhost|127.*|[::1]"].join(" "),
  };
}
