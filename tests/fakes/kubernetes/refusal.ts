/** What the server answers to a request that it refuses: a `Status`. */
export class Refusal extends Error {
  readonly code: number;
  readonly reason: string;
  readonly details: Readonly<Record<string, unknown>> | undefined;

  constructor(code: number, reason: string, message: string, details?: Readonly<Record<string, unknown>>) {
    super(message);
    this.code = code;
    this.reason = reason;
    this.details = details;
  }

  get body(): object {
    return {
      kind: "Status",
      apiVersion: "v1",
      metadata: {},
      status: "Failure",
      message: this.message,
      reason: this.reason,
      ...(this.details && { details: this.details }),
      code: this.code,
    };
  }
}

export function badRequest(message: string): Refusal {
  return new Refusal(400, "BadRequest", message);
}

export function notFound(plural: string, name: string): Refusal {
  return new Refusal(404, "NotFound", `${plural} "${name}" not found`, { name, kind: plural });
}

export function noSuchResource(): Refusal {
  return new Refusal(404, "NotFound", "the server could not find the requested resource", {});
}

/** The object is not what one of its kind can be; `fields` are `path: what is wrong`. */
export function invalid(kind: string, name: string, ...fields: readonly string[]): Refusal {
  const said = fields.length === 1 ? (fields[0] ?? "") : `[${fields.join(", ")}]`;
  const causes = fields.map((field) => ({ reason: "FieldValueInvalid", message: field, field: field.split(":")[0] }));
  return new Refusal(422, "Invalid", `${kind} "${name}" is invalid: ${said}`, { name, kind, causes });
}

export function forbidden(plural: string, name: string, why: string): Refusal {
  return new Refusal(403, "Forbidden", `${plural} "${name}" is forbidden: ${why}`, { name, kind: plural });
}
