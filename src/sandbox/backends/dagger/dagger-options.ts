declare global {
  interface GloveboxBackendOptions {
    dagger?: DaggerOptions;
  }
}

/** A container beside a Dagger sandbox, reached from inside by its host name. */
export interface DaggerService {
  image: string;
  /** Default: what the image says. */
  args?: readonly string[];
  env?: Readonly<Record<string, string>>;
  /** The sandbox starts once all of them answer; `url` reaches them from the host. */
  ports?: readonly number[];
}

/** What only the Dagger backend knows. */
export interface DaggerOptions {
  /** Path of the `dagger` program. Default: `_EXPERIMENTAL_DAGGER_CLI_BIN`, else the one in PATH. */
  cli?: string;
  /** A session that is open already. Default: `DAGGER_SESSION_PORT` and `DAGGER_SESSION_TOKEN`, else one is started. */
  session?: { port: number; token: string };
  /** Commands that prepare the image. Only these are answered from the engine's cache. */
  setup?: readonly (readonly string[])[];
  /** By host name. */
  services?: Readonly<Record<string, DaggerService>>;
  /** Name of a variable to where Dagger finds its value: `env://`, `file://`, `cmd://` and the like. */
  secrets?: Readonly<Record<string, string>>;
  /**
   * How long a step of the graph stays open for the next operation, in milliseconds. 0: each operation is a step of its
   * own, in the graph when its call returns. Default 100.
   */
  linger?: number;
  /** The module `@dagger.io/dagger`, where it is not to be imported by its name. */
  sdk?: unknown;
}
