/** One connection that a program inside made to the proxy, as bytes. */
export interface EgressConnection {
  /** What the program sends: pulled, so that it is slowed down while nobody asks. Ends with its half of the connection. */
  readonly input: AsyncIterable<Uint8Array>;
  /** Resolves once there is room for more. */
  write(chunk: Uint8Array): Promise<void>;
  /** Closes the half towards the program. */
  end(): Promise<void>;
  /** Closes the connection at once; what was not sent is lost. */
  destroy(): void;
}
