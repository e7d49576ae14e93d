const LOOPBACK = ["localhost", "127.0.0.1", "[::1]"];

/** Whether a request is for this server by its `Host`: a page that a name of its own leads here is not. */
export function isKnownHost(header: string | undefined, more: readonly string[]): boolean {
  if (header === undefined) return false;
  const name = URL.canParse(`http://${header}`) ? new URL(`http://${header}`) : undefined;
  if (name === undefined || name.pathname !== "/" || name.username !== "") return false;
  return [...LOOPBACK, ...more.map((each) => each.toLowerCase())].some(
    (each) => each === name.hostname || each === name.host,
  );
}

/** Whether a web page of this origin may send requests. Programs send no origin. */
export function isKnownOrigin(header: string | undefined, more: readonly string[]): boolean {
  if (header === undefined) return true;
  if (more.includes(header)) return true;
  const origin = URL.canParse(header) ? new URL(header) : undefined;
  return origin !== undefined && /^https?:$/.test(origin.protocol) && LOOPBACK.includes(origin.hostname);
}
