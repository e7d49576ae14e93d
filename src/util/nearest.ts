/** Finds the known name closest to a mistyped one; undefined if none is close. */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  // The dashes of a flag are right already: they make no two names alike.
  const bare = toBare(name);
  let best: string | undefined;
  let bestDistance = 1 + (bare.length <= SHORT ? 1 : Math.max(2, Math.floor(bare.length / 3)));
  for (const candidate of known) {
    const other = toBare(candidate);
    if (isOtherWord(bare, other)) continue;
    const distance = editDistance(bare, other);
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

const SHORT = 3;

function toBare(name: string): string {
  return name.replace(/^-+/, "").toLowerCase();
}

/** One other letter makes another word of a short one: `cmd` is not a typo of `cwd`, but `evn` is one of `env`. */
function isOtherWord(name: string, other: string): boolean {
  const sorted = (word: string): string => [...word].sort().join("");
  return name.length <= SHORT && name.length === other.length && sorted(name) !== sorted(other);
}

/** How many letters to insert, remove, replace or swap with the next. */
function editDistance(from: string, to: string): number {
  if (Math.abs(from.length - to.length) > 8) return Number.POSITIVE_INFINITY;
  let before: number[] = [];
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const substitution = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      const isSwap = row > 1 && column > 1 && from[row - 1] === to[column - 2] && from[row - 2] === to[column - 1];
      const swap = isSwap ? (before[column - 2] ?? 0) + 1 : Number.POSITIVE_INFINITY;
      current.push(Math.min((previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, substitution, swap));
    }
    [before, previous] = [previous, current];
  }
  return previous[to.length] ?? Number.POSITIVE_INFINITY;
}
