/** Patterns are put together from pieces so that this file does not hold what it looks for. */
const PATTERNS: readonly RegExp[] = [
  new RegExp(`(?<![\\w.])/${"wo"}${"rk"}/`),
  new RegExp(`\\.\\./${"sha"}${"red"}/`),
  new RegExp(`${"regis"}${"try"}\\.(?:npmjs|yarnpkg|npmmirror)`),
  new RegExp(`https?://[\\w.:-]*(?:${"artifac"}${"tory"}|${"ver"}${"daccio"}|${"nex"}${"us"})`),
  new RegExp(`"${"resol"}${"ved"}":\\s*"http`),
];

/** Lines of a text that name the machine it was written on, or where its packages were fetched from. */
export function findForbidden(file: string, text: string): string[] {
  return text.split("\n").flatMap((line, index) => {
    const pattern = PATTERNS.find((each) => each.test(line));
    return pattern ? [`${file}:${index + 1} matches ${pattern.source}: ${line.trim().slice(0, 100)}`] : [];
  });
}
