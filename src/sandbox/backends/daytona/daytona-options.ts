declare global {
  interface GloveboxBackendOptions {
    daytona?: DaytonaOptions;
  }
}

/** Options of the Daytona backend. */
export interface DaytonaOptions {
  /** Default: the variable DAYTONA_API_KEY. */
  apiKey?: string;
  /** https, or http on loopback. Default: the variable DAYTONA_API_URL, else https://app.daytona.io/api. */
  apiUrl?: string;
  /** Region. Default: the variable DAYTONA_TARGET, else `us`. */
  target?: string;
  /** Default `daytona-medium`. Excludes the option `image`. */
  snapshot?: string;
  /** Whole cores and GiB. With `image` the sandbox is made so; with a snapshot it is resized. */
  resources?: { cpu?: number; memory?: number; disk?: number };
  /** Minutes without activity after which the service stops the sandbox; while it is open here, it is kept awake. Default 30. */
  autoStopMinutes?: number;
  /** Minutes after which the service deletes the sandbox, whatever happens. Default 1440; 0 is never. */
  ttlMinutes?: number;
  /** A client of `@daytona/sdk`, or of `@daytonaio/sdk`, instead of one that is made here. It stays the caller's. */
  client?: unknown;
}
