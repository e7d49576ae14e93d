const SECRET_PARTS: ReadonlySet<string> = new Set(["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL"]);
/** A cheap first check that rules out most names. */
const LIKELY = new RegExp([...SECRET_PARTS].join("|"), "i");
const MIN_BASE64_LENGTH = 6;

/** Whether a variable's name says that its value is secret: `API_KEY_PROD` and `apiKey` do, `KEYBOARD` does not. */
export function isSecretName(name: string): boolean {
  if (!LIKELY.test(name)) return false;
  return name
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1 $2")
    .split(/[^A-Za-z]+/)
    .some((part) => SECRET_PARTS.has(part.toUpperCase().replace(/S$/, "")));
}

/** Every form a secret may have in a text: plain, in JSON, in JSON that is in JSON, in HTML, URL-encoded and in base64. */
export function secretForms(value: string): string[] {
  return [...new Set([value, ...jsonForms(value), ...htmlForms(value), ...urlForms(value), ...base64Forms(value)])];
}

/** As JavaScript and Python write it; with `\/`, as PHP does; and with escapes for what HTML would understand, as Go and Java do. */
function jsonForms(value: string): string[] {
  const json = JSON.stringify(value).slice(1, -1);
  // An agent's transcript is JSON, and what its tools print often is.
  const twice = JSON.stringify(json).slice(1, -1);
  const escaped = (pattern: RegExp): string =>
    json.replace(pattern, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return [json, twice, json.replaceAll("/", "\\/"), escaped(/[<>&]/g), escaped(/[<>&'=]/g)];
}

/** What the languages and template engines that many servers use make of the characters that they escape. */
const HTML_ESCAPES: readonly Readonly<Record<string, string>>[] = [
  { '"': "&quot;", "'": "&#39;" },
  { '"': "&quot;", "'": "&#x27;" },
  { '"': "&quot;", "'": "&#039;" },
  { '"': "&#34;", "'": "&#39;" },
  { '"': "&#34;", "'": "&#39;", "+": "&#43;" },
  { '"': "&quot;", "'": "&#x27;", "`": "&#x60;", "=": "&#x3D;" },
  { '"': "&quot;", "'": "&#39;", "`": "&#x60;", "=": "&#x3D;", "/": "&#x2F;" },
  {},
];

function htmlForms(value: string): string[] {
  return HTML_ESCAPES.map((more) => {
    const escapes = { "&": "&amp;", "<": "&lt;", ">": "&gt;", ...more };
    return value.replace(/[&<>"'+`=/]/g, (c) => escapes[c as keyof typeof escapes] ?? c);
  });
}

function urlForms(value: string): string[] {
  // A lone surrogate has no URL form; as UTF-8 it is U+FFFD.
  const wellFormed = Buffer.from(value).toString();
  const component = encodeURIComponent(wellFormed);
  const strict = component.replace(/[!'()*~]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
  const forms = [
    encodeURI(wellFormed),
    component,
    strict,
    strict.replaceAll("%20", "+"),
    component.replaceAll("%20", "+"),
  ];
  return forms.flatMap((form) => [form, form.replace(/%[0-9A-F]{2}/g, (hex) => hex.toLowerCase())]);
}

/** The secret alone, and the fixed middle of its encoding at each of the three alignments within a longer text. */
function base64Forms(value: string): string[] {
  const bytes = Buffer.from(value);
  const padded = bytes.toString("base64");
  const forms = [padded, padded.replace(/=+$/, "")];
  for (const shift of [0, 1, 2]) {
    const encoded = Buffer.concat([Buffer.alloc(shift), bytes]).toString("base64");
    forms.push(encoded.slice(Math.ceil((shift * 8) / 6), Math.floor(((shift + bytes.length) * 8) / 6)));
  }
  return forms
    .flatMap((form) => [form, form.replaceAll("+", "-").replaceAll("/", "_")])
    .filter((form) => form.length >= MIN_BASE64_LENGTH);
}
