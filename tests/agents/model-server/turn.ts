/** Tokens that a turn says it used. What came from the cache is not part of `input`. */
export interface TurnUsage {
  readonly input: number;
  readonly output: number;
  readonly cacheRead?: number;
  readonly cacheWrite?: number;
}

/** A tool that the model wants to be run. `input` as a text is for tools that take free text. */
export interface ToolCall {
  readonly name: string;
  readonly input: Readonly<Record<string, unknown>> | string;
}

/** What the model says to one request. */
export interface Turn {
  readonly text?: string;
  readonly tools?: readonly ToolCall[];
  readonly usage?: TurnUsage;
  /** Answers with this status and an error as the protocol writes it, and nothing else. */
  readonly status?: number;
  readonly message?: string;
  /** More headers of the answer, for example `retry-after`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Stops in the middle of the stream: the connection is cut, or stays open and silent until the client goes. */
  readonly stop?: "cut" | "hang";
  /** Milliseconds between two events of the stream. */
  readonly pace?: number;
  /** The answer starts when this resolves, or the client goes. */
  readonly after?: Promise<unknown>;
}

/** Tokens of a turn that doesn't say. */
export const DEFAULT_USAGE: Required<TurnUsage> = { input: 100, output: 10, cacheRead: 0, cacheWrite: 0 };

/** What a turn used, in full. */
export function usageOf({ usage }: Turn): Required<TurnUsage> {
  return { ...DEFAULT_USAGE, ...usage };
}

/** The pieces that a text is streamed in. */
export function piecesOf(text: string): string[] {
  return text.match(/.{1,20}/gs) ?? [];
}
