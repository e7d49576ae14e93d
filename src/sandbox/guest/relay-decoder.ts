/** Parses what a relay sends: its introduction, signs of life, and pieces of the guest's bytes with their position. */
export interface RelayDecoder<Said> {
  /** How many of the guest's bytes have come. */
  readonly position: number;
  /** Grows with everything that was understood. */
  readonly heard: number;
  /** Whether the relay reported that there is no guest. */
  readonly hasEnded: boolean;
  /** What commands find in the environment, once a relay has reported it. */
  readonly environment: Readonly<Record<string, string>> | undefined;
  /** A new relay starts from the beginning. */
  restart(): void;
  /** Returns the bytes that this completes. `fetch` reads a file that the relay has left. What doesn't fit is `tampered`. */
  push(said: Said, fetch: (name: string) => Promise<Uint8Array>): AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
}
