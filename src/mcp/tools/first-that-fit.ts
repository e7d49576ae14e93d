/** The first of the items whose sizes, one after the other, are at most `room` together. */
export function firstThatFit<T>(items: readonly T[], sizeOf: (item: T) => number, room: number): T[] {
  let left = room;
  const end = items.findIndex((item) => {
    left -= sizeOf(item);
    return left < 0;
  });
  return items.slice(0, end === -1 ? items.length : end);
}
