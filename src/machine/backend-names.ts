const names = new Set<string>();

/** Adds the name of a backend, so that its options are accepted next to those of others. */
export function addBackendName(name: string): void {
  names.add(name);
}

/** The names of the backends that options can be given for. */
export function backendOptionNames(): readonly string[] {
  return [...names];
}
