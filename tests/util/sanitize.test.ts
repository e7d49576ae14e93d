import fc from "fast-check";
import { afterEach, describe, expect, test } from "vitest";
import { createByteRedactor } from "../../src/util/redact.js";
import { createRedactor, MAX_OUTPUT_BYTES, redact, registerSecret, truncate } from "../../src/util/sanitize.js";

const inJson = (value: string): string => JSON.stringify(value).slice(1, -1);

describe("truncate", () => {
  test("the default bound is 1 MiB, and a text of just that size is left alone", () => {
    expect(MAX_OUTPUT_BYTES).toBe(1_048_576);
    const text = "x".repeat(MAX_OUTPUT_BYTES);
    expect(truncate(text)).toBe(text);
    expect(truncate(`${text}y`)).toContain("[... 1 bytes left out ...]");
  });

  test("keeps head and tail and says how much is missing", () => {
    expect(truncate("aaaabbbbcccc", 8)).toBe("aaaa\n[... 4 bytes left out ...]\ncccc");
    expect(truncate("abcdef", 0)).toBe("\n[... 6 bytes left out ...]\n");
    expect(truncate("", 0)).toBe("");
  });

  test("never splits a character", () => {
    expect(truncate("😀😀😀", 6)).toBe("\n[... 12 bytes left out ...]\n");
    expect(truncate("😀😀😀", 9)).toBe("😀\n[... 4 bytes left out ...]\n😀");
  });

  test.each([-1, 1.5, Number.NaN, Number.POSITIVE_INFINITY])("refuses a bound of %s", (bound) => {
    expect(() => truncate("x", bound)).toThrow(RangeError);
  });

  test("stays in bounds, at character borders, with a true count", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 60 }), fc.nat(80), (text, bound) => {
        const size = Buffer.byteLength(text);
        const result = truncate(text, bound);
        if (size <= bound) {
          expect(result).toBe(text);
          return;
        }
        const markers = [...result.matchAll(/\n\[\.\.\. (\d+) bytes left out \.\.\.\]\n/g)];
        const fits = markers.some((marker) => {
          const head = result.slice(0, marker.index);
          const tail = result.slice(marker.index + marker[0].length);
          const kept = Buffer.byteLength(head) + Buffer.byteLength(tail);
          return kept <= bound && kept + Number(marker[1]) === size && text.startsWith(head) && text.endsWith(tail);
        });
        expect(fits).toBe(true);
      }),
      { numRuns: 1000 },
    );
  });
});

describe("redact", () => {
  const forget: (() => void)[] = [];
  const added: string[] = [];
  const setEnv = (name: string, value: string) => {
    added.push(name);
    process.env[name] = value;
  };
  afterEach(() => {
    for (const undo of forget.splice(0)) undo();
    for (const name of added.splice(0)) delete process.env[name];
  });

  test.each([
    "API_KEY_PROD",
    "apiKey",
    "APIKeyProd",
    "npm-token",
    "DB_PASSWORD",
    "CLIENT_SECRET_2",
    "AWS_CREDENTIALS",
    "TOKEN2",
  ])("the value of %s is hidden", (name) => {
    expect(redact("<value-of-it>", { env: { [name]: "value-of-it" } })).toBe(`<[REDACTED:${name}]>`);
  });

  test.each(["KEYBOARD", "MONKEY", "TOKENIZER", "PATH", "SECRETARY", "HOTKEY"])("the value of %s is not", (name) => {
    expect(redact("<value-of-it>", { env: { [name]: "value-of-it" } })).toBe("<value-of-it>");
  });

  test("values under 8 characters are left, unless registered", () => {
    expect(redact("1234567", { env: { MY_KEY: "1234567" } })).toBe("1234567");
    forget.push(registerSecret("1234567"));
    expect(redact("a 1234567 b")).toBe("a [REDACTED] b");
  });

  test("the process's own environment counts", () => {
    setEnv("SAMPLE_DEPLOY_TOKEN", "tok-0123456789");
    expect(redact("x tok-0123456789 y")).toBe("x [REDACTED:SAMPLE_DEPLOY_TOKEN] y");
  });

  test("a registered secret has its name, and can be forgotten", () => {
    const undo = registerSecret("by-hand-value", "HANDMADE");
    expect(redact("by-hand-value")).toBe("[REDACTED:HANDMADE]");
    undo();
    expect(redact("by-hand-value")).toBe("by-hand-value");
  });

  test("an empty secret is refused", () => {
    expect(() => registerSecret("")).toThrow(TypeError);
  });

  const secret = "p@ss w/+rd?é'!\n9";
  test.each([
    ["URL component", encodeURIComponent(secret)],
    ["URL component with small hex digits", encodeURIComponent(secret).replace(/%../g, (hex) => hex.toLowerCase())],
    ["form field", new URLSearchParams({ q: secret }).toString().slice(2)],
    ["JSON", inJson(secret)],
    ["JSON in JSON", inJson(inJson(secret))],
    ["base64", Buffer.from(secret).toString("base64")],
    ["base64url", Buffer.from(secret).toString("base64url")],
  ])("found as %s", (_form, encoded) => {
    expect(redact(`<${encoded}>`, { secrets: [secret] })).toBe("<[REDACTED]>");
  });

  test.each(["", "u", "us", "use", "user:"])("found in base64 after %j and before more", (before) => {
    const encoded = Buffer.from(`${before}${secret}and more`).toString("base64");
    const result = redact(encoded, { secrets: [secret] });
    expect(result).toContain("[REDACTED]");
    // At most one digit on either side carries bits of the secret together with those of a neighbour.
    expect(result.replace("[REDACTED]", "").length).toBeLessThanOrEqual(
      encoded.length - Math.floor((secret.length * 8) / 6) + 2,
    );
  });

  test("the longest of several wins, and overlapping ones leave nothing between", () => {
    expect(redact("abcdefghij", { secrets: ["abcdefgh", "abcdefghij"] })).toBe("[REDACTED]");
    expect(redact("<abcdefghijkl>", { secrets: ["abcdefgh", "efghijkl"] })).toBe("<[REDACTED]>");
    expect(redact("<ababababab>", { secrets: ["abababab"] })).toBe("<[REDACTED]>");
    expect(redact("abcdefghabcdefgh", { secrets: ["abcdefgh"] })).toBe("[REDACTED][REDACTED]");
  });

  test("a text without secrets flows through at once", () => {
    const redactor = createRedactor({ secrets: ["topsecret"] });
    expect(redactor.write("a line\n")).toBe("a line\n");
    expect(redactor.held).toBe(0);
    expect(redactor.write("ends in top")).toBe("ends in ");
    expect(redactor.held).toBe(3);
    expect(redactor.write("most")).toBe("topmos");
    expect(redactor.held).toBe(1);
    expect(redactor.write("opsecret")).toBe("[REDACTED]");
    expect(redactor.end()).toBe("");
  });

  const word = fc.string({ unit: fc.constantFrom("a", "b", "c"), minLength: 8, maxLength: 14 });
  const piece = fc.oneof(
    fc.string({ unit: fc.constantFrom("a", "b", "c", "-"), maxLength: 6 }),
    fc.string({ unit: "binary", maxLength: 3 }),
  );

  test("never leaves a secret, in whatever form and however the text was cut", () => {
    const input = fc.record({
      secrets: fc.array(fc.oneof(word, fc.string({ unit: "grapheme", minLength: 8, maxLength: 12 })), {
        minLength: 1,
        maxLength: 3,
      }),
      parts: fc.array(fc.tuple(piece, fc.nat(2), fc.nat(4)), { minLength: 1, maxLength: 6 }),
      cuts: fc.array(fc.integer({ min: 1, max: 7 }), { minLength: 1, maxLength: 20 }),
    });
    fc.assert(
      fc.property(input, ({ secrets, parts, cuts }) => {
        const forms = [
          String,
          encodeURIComponent,
          (v: string) => Buffer.from(v).toString("base64"),
          inJson,
          (v: string) => inJson(inJson(v)),
        ];
        const text = parts
          .map(
            ([before, which, form]) =>
              before + (forms[form] as (v: string) => string)(secrets[which % secrets.length] as string),
          )
          .join("");
        const whole = redact(text, { secrets });
        for (const secret of secrets) for (const form of forms) expect(whole).not.toContain(form(secret));

        const redactor = createRedactor({ secrets });
        let streamed = "";
        for (let at = 0, turn = 0; at < text.length; turn += 1) {
          const step = cuts[turn % cuts.length] as number;
          streamed += redactor.write(text.slice(at, at + step));
          at += step;
        }
        expect(streamed + redactor.end()).toBe(whole);
        const ofBytes = createByteRedactor({ secrets });
        const bytes = Buffer.from(text);
        const pieces: Buffer[] = [];
        for (let at = 0, turn = 0; at < bytes.length; turn += 1) {
          const step = cuts[turn % cuts.length] as number;
          pieces.push(ofBytes.write(bytes.subarray(at, at + step)));
          at += step;
        }
        expect(Buffer.concat([...pieces, ofBytes.end()]).toString()).toBe(whole);
      }),
      { numRuns: 500 },
    );
  });

  test("a text without any secret is never changed", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom("a", "b", "c"), maxLength: 40 }), word, (text, secret) => {
        fc.pre(!text.includes(secret));
        expect(redact(text, { secrets: [secret] })).toBe(text);
      }),
    );
  });
});

test("a redactor that lives long hides values that are registered later", () => {
  const text = createRedactor();
  const bytes = createByteRedactor();
  expect(text.write("late-value-1 ")).toBe("late-value-1 ");
  const forget = registerSecret("late-value-1", "LATE");
  expect(text.write("late-value-1") + text.end()).toBe("[REDACTED:LATE]");
  expect(Buffer.concat([bytes.write(Buffer.from("late-value-1")), bytes.end()]).toString()).toBe("[REDACTED:LATE]");
  forget();
});
