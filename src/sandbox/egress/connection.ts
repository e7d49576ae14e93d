/** A connection from a program in the sandbox to the proxy, as bytes. */
export interface EgressConnection {
  /** What the program sends. Pulled, so that the program waits while nobody reads. Ends with its half of the connection. */
  readonly input: AsyncIterable<Uint8Array>;
  /** Resolves once there is room for more. */
  write(chunk: Uint8Array): Promise<void>;
  /** Closes the half towards the program. */
  end(): Promise<void>;
  /** Closes the connection at once; what was not sent is lost. */
  destroy(): void;
}
