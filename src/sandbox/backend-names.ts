const names = new Set<string>();

/** Makes the name of a backend known, so that its options may stand beside those of others. */
export function addBackendName(name: string): void {
  names.add(name);
}

/** The names of the backends that options may be given for. */
export function backendOptionNames(): readonly string[] {
  return [...names];
}
