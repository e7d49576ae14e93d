import fc from "fast-check";
import { test } from "vitest";
import { isoTime } from "../../src/util/iso-time.js";

test("a time is written as Date writes it", () => {
  const moments = fc.integer({ min: 0, max: Date.UTC(9999, 11, 31, 23, 59, 59, 999) });
  fc.assert(fc.property(moments, (at) => isoTime(at) === new Date(at).toISOString()));
});
