/**
 * Where programs in a sandbox with a list of names find their resolver, and most names lead. No program expects to listen there, as it may on
 * 127.0.0.1.
 */
export const RESOLVER_ADDRESS = "127.77.0.1";
