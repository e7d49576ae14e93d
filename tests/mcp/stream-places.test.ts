import { expect, it } from "vitest";
import { StreamPlaces } from "../../src/mcp/stream-places.js";

it("says where in a stream something was that was shown, and rather what is before it than what is after", () => {
  const places = new StreamPlaces();
  expect(places.of(3)).toBe(3);
  places.add(0, 10, 10);
  places.add(10, 10, 20);
  // Here 30 bytes became 12, somewhere.
  places.add(20, 12, 50);
  places.add(32, 8, 58);
  expect([0, 9, 10, 19, 20, 25, 31, 32, 39, 100].map((each) => places.of(each))).toEqual([
    ...[0, 9, 10, 19, 20, 20, 20, 50, 57, 118],
  ]);
});
