/** An answer of the service that refuses a request. */
export class Refusal extends Error {
  readonly status: number;
  readonly code: string;
  /** What else the error says, for example `invalidToken`. */
  readonly details: Readonly<Record<string, unknown>>;

  constructor(status: number, code: string, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}
