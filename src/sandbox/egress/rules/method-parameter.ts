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

/** Decodes byte by byte: what isn't UTF-8, or no escape, must not hide the rest. */
export function decodeBytes(text: string): string {
  return text.replace(/%([0-9a-f]{2})/gi, (_all, code: string) => String.fromCharCode(Number.parseInt(code, 16)));
}
