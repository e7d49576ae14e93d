declare global {
  interface GloveboxBackendOptions {
    local?: LocalOptions;
  }
}

/** The local backend has no options of its own. */
export type LocalOptions = Readonly<Record<never, never>>;
