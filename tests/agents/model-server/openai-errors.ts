const KINDS: Readonly<Record<number, readonly [string, string]>> = {
  400: ["invalid_request_error", "invalid_request"],
  401: ["invalid_request_error", "invalid_api_key"],
  403: ["invalid_request_error", "forbidden"],
  429: ["requests", "rate_limit_exceeded"],
};

/** An error as OpenAI's services write it. */
export function openAiError(status: number, message: string): unknown {
  const [type, code] = KINDS[status] ?? ["server_error", "server_error"];
  return { error: { message, type, code, param: null } };
}
