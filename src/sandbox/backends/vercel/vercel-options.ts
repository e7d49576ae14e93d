declare global {
  interface GloveboxBackendOptions {
    vercel?: VercelOptions;
  }
}

/** What only the Vercel backend knows. Credentials: all three, or none of them and those of the environment. */
export interface VercelOptions {
  token?: string;
  teamId?: string;
  projectId?: string;
  /** Legacy runtime, for example `python3.13`. Excludes `image`. */
  runtime?: string;
  /** How long the machine may stand idle, in milliseconds; extended while something runs. Default 300 000. */
  timeout?: number;
  /** Ports that are opened from the start; `url` opens others when they are asked for. At most 15 in all. */
  ports?: readonly number[];
  /** Default `iad1`. */
  region?: string;
  /** Milliseconds after which the service deletes a snapshot, 0 for never. Default: as the service says. */
  snapshotExpiration?: number;
  /** What calls the service. Default the global one. */
  fetch?: typeof globalThis extends { fetch: infer Fetch } ? Fetch : unknown;
  /** The module `@vercel/sandbox`, if it should not be imported by its name. */
  sdk?: unknown;
}
