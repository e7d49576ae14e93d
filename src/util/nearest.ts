/** Finds the known name closest to a mistyped one; undefined if none is close. */
export function nearestName(name: string, known: Iterable<string>): string | undefined {
  // The dashes of a flag are right already: they make no two names alike.
  const bare = name.replace(/^-+/, "");
  let best: string | undefined;
  let bestDistance = 1 + (bare.length <= 3 ? 1 : Math.max(2, Math.floor(bare.length / 3)));
  for (const candidate of known) {
    const distance = editDistance(bare.toLowerCase(), candidate.replace(/^-+/, "").toLowerCase());
    if (distance < bestDistance) {
      best = candidate;
      bestDistance = distance;
    }
  }
  return best;
}

function editDistance(from: string, to: string): number {
  if (Math.abs(from.length - to.length) > 8) return Number.POSITIVE_INFINITY;
  let previous = Array.from({ length: to.length + 1 }, (_, column) => column);
  for (let row = 1; row <= from.length; row++) {
    const current = [row];
    for (let column = 1; column <= to.length; column++) {
      const substitution = (previous[column - 1] ?? 0) + (from[row - 1] === to[column - 1] ? 0 : 1);
      current.push(Math.min((previous[column] ?? 0) + 1, (current[column - 1] ?? 0) + 1, substitution));
    }
    previous = current;
  }
  return previous[to.length] ?? Number.POSITIVE_INFINITY;
}
