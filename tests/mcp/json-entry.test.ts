import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type EntryChange, editJson } from "../../src/mcp/install/json-entry.js";
import { parseJsonText } from "../../src/mcp/install/json-text.js";

const change: EntryChange = {
  file: "mcp.json",
  name: "glovebox",
  keys: ["servers"],
  entry: { own: { command: "/bin/node", args: ["mcp"] } },
};
const gap = fc.constantFrom(
  "",
  "",
  " ",
  "\n",
  "\n  ",
  "\t",
  " // a { comment\n",
  " /* ], note */ ",
  "\n/* two\nlines */\n    ",
);
const word = fc.constantFrom("a", "b", 'q"', "servers of mine", "//", "ü");

/** A text of JSON with comments, spaces and commas as people write them. */
const anyJson = fc.letrec<{ value: string; object: string }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom("1.0", "-2e5", "true", "null", '"x\\u0041"', '"\\\\"', "[]"),
    fc.array(tie("value"), { maxLength: 3 }).map((all) => `[${all.join(", ")}]`),
    tie("object"),
  ),
  object: fc
    .tuple(fc.array(fc.tuple(gap, word, gap, tie("value"), gap), { maxLength: 4 }), gap, fc.boolean())
    .map(([members, end, isTrailing]) => {
      const all = members.map(([a, key, b, value, c]) => `${a}${JSON.stringify(key)}${b}:${value}${c}`);
      return `{${all.join(",")}${isTrailing && all.length > 0 ? "," : ""}${end}}`;
    }),
})).object;

function isPlain(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

describe("an entry in JSON", () => {
  it("is added and taken out, and nothing else changes", () => {
    fc.assert(
      fc.property(anyJson, anyJson, fc.boolean(), (text, servers, hasServers) => {
        const before = hasServers
          ? text.replace(/^\{/, `{"servers": ${servers}${/^\{\s*\}/.test(text) ? "" : ","}`)
          : text;
        let known: unknown;
        try {
          known = parseJsonText(before).value;
        } catch {
          return;
        }
        const written = editJson(before, change);
        const own = (known as { servers?: object }).servers ?? {};
        const entry = { command: "/bin/node", args: ["mcp"] };
        expect(parseJsonText(written).value).toEqual({ ...(known as object), servers: { ...own, glovebox: entry } });
        expect(editJson(written, change)).toBe(written);
        const after = editJson(written, { ...change, entry: undefined });
        const left = parseJsonText(after).value as { servers?: object };
        expect({ servers: {}, ...left }).toEqual({ servers: {}, ...(known as object) });
        // What had no comments can be read without them.
        if (isPlain(before)) expect([written, after].map(isPlain)).toEqual([true, true]);
        for (const comment of before.match(/a \{ comment|two\nlines|note/g) ?? []) expect(after).toContain(comment);
      }),
      { numRuns: 1_000 },
    );
  });
});
