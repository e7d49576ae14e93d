/** What is wrong with the address of another site, by its syntax alone. */
export function externalFault(link) {
  if (!URL.canParse(link)) return "this is no address";
  const { protocol, hostname } = new URL(link);
  if (["mailto:", "data:"].includes(protocol)) return undefined;
  if (!["https:", "http:"].includes(protocol)) return `${protocol} is not for a page`;
  return hostname.includes(".") || hostname === "localhost" ? undefined : "the host has no domain";
}

/** A part of an address without its escapes; one that is malformed stays as it is, and is not found. */
export function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
