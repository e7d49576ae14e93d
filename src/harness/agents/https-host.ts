/** The host of an address with TLS, as `host` or `host:port`; undefined for any other text, and for an address without a name. */
export function httpsHost(text: string): string | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "https:" || !/\.[a-z]/i.test(url.hostname)) return undefined;
  return url.port === "" ? url.hostname : `${url.hostname}:${url.port}`;
}
