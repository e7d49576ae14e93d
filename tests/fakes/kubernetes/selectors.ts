import { badRequest } from "./refusal.js";
import type { Stored } from "./store.js";

/** The fields by which a kind can be selected, besides name and namespace. */
const FIELDS: Readonly<Record<string, readonly string[]>> = {
  Pod: ["spec.nodeName", "spec.restartPolicy", "status.phase", "status.podIP"],
  Event: [
    "involvedObject.kind",
    "involvedObject.name",
    "involvedObject.namespace",
    "involvedObject.uid",
    "reason",
    "type",
  ],
  Job: ["status.successful"],
};

/** What decides whether an object is selected by a request. */
export function selectorOf(kind: string, query: URLSearchParams): (object: Stored) => boolean {
  const labels = parseLabels(query.get("labelSelector") ?? "");
  const fields = parseFields(kind, query.get("fieldSelector") ?? "");
  return (object) => labels(object.metadata.labels ?? {}) && fields(object);
}

function parseLabels(text: string): (labels: Readonly<Record<string, string>>) => boolean {
  // Commas in `in (a,b)` separate values.
  const parts = text === "" ? [] : text.split(/,(?![^(]*\))/);
  const tests = parts.map((part) => {
    const [, key = "", operator, value = ""] =
      /^\s*!?([A-Za-z0-9][-A-Za-z0-9_./]*)\s*(==|=|!=|in|notin)?\s*(.*?)\s*$/.exec(part) ?? [];
    if (key === "") throw badRequest(`unable to parse requirement: ${part}`);
    const values = value
      .replace(/^\(|\)$/g, "")
      .split(",")
      .map((each) => each.trim());
    return (labels: Readonly<Record<string, string>>): boolean => {
      const own = labels[key];
      if (operator === undefined) return (own !== undefined) !== part.trim().startsWith("!");
      const isOne = own !== undefined && values.includes(own);
      return operator === "!=" || operator === "notin" ? !isOne : isOne;
    };
  });
  return (labels) => tests.every((test) => test(labels));
}

function parseFields(kind: string, text: string): (object: Stored) => boolean {
  const known = ["metadata.name", "metadata.namespace", ...(FIELDS[kind] ?? [])];
  const tests = (text === "" ? [] : text.split(",")).map((part) => {
    const [, field = "", operator, value = ""] = /^([\w.]+)(==|=|!=)(.*)$/.exec(part) ?? [];
    if (!known.includes(field)) throw badRequest(`field label not supported: ${field || part}`);
    return (object: Stored): boolean => (read(object, field) === value) === (operator !== "!=");
  });
  return (object) => tests.every((test) => test(object));
}

function read(object: unknown, path: string): string {
  let value = object;
  for (const part of path.split(".")) value = (value as Record<string, unknown> | undefined)?.[part];
  return value === undefined ? "" : String(value);
}
