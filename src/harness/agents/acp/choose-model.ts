import { asRecord, asRecords, asText, type Untrusted } from "../json-line.js";

/** A request that sets the model of a session. */
export interface ModelChoice {
  readonly method: string;
  readonly params: object;
}

/** How the model of a session is set, by what the agent said about the session; a text says why it can't be. */
export function chooseModel(session: Untrusted, sessionId: string, model: string): ModelChoice | string {
  const option = asRecords(session["configOptions"]).find(
    ({ category, id, configId = id }) => category === "model" || configId === "model",
  );
  if (option !== undefined) {
    const known = asRecords(option["options"]).flatMap((item) => [item, ...asRecords(item["options"])]);
    const names = known.flatMap(({ value }) => asText(value) ?? []);
    if (!names.includes(model)) return unknownModel(model, names);
    // Version 2 has another name for the id of an option, and wants the kind of the value.
    const { id, configId } = option;
    const params = { sessionId, configId: configId ?? id, ...(configId !== undefined && { type: "id" }), value: model };
    return { method: "session/set_config_option", params };
  }
  const names = asRecords(asRecord(session["models"])?.["availableModels"]).flatMap(
    ({ modelId }) => asText(modelId) ?? [],
  );
  if (names.length === 0) return "it doesn't let its model be chosen; leave model out, or name it in command";
  if (!names.includes(model)) return unknownModel(model, names);
  return { method: "session/set_model", params: { sessionId, modelId: model } };
}

function unknownModel(model: string, names: readonly string[]): string {
  const shown = names.slice(0, 20).join(", ");
  return `it has no model ${JSON.stringify(model)}; it has ${shown}${names.length > 20 ? " and others" : ""}`;
}
