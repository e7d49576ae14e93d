import { decodeBytes } from "./lenient-path.js";

/** `_method`, in the spellings that some servers take for it: with a space or a dot, as a list, in other letters. */
const METHOD = /^\s*[_.]method\s*(?:\[|$)/i;

/** Whether the query of a request has a parameter from which some servers take another method. */
export function hasMethodParameter(target: string): boolean {
  const [, query = ""] = /^[^?]*\?(.*)$/s.exec(target) ?? [];
  return query.split(/[?&;]/).some((parameter) => {
    const [name = "", ...value] = parameter.split("=");
    return value.length > 0 && METHOD.test(decodeBytes(name.replaceAll("+", " ")));
  });
}
