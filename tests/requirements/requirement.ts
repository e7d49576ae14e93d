/** One promise: a test cites its id in square brackets, or it says why none does. */
export interface Requirement {
  readonly id: string;
  readonly sentence: string;
  /** Document and place, for example `spec 1 AC-3`. */
  readonly source: string;
  /** Why it holds no longer; then no test may cite it. */
  readonly superseded?: string;
  /** What will bring it. */
  readonly later?: string;
}

/** Finds the ids that a file of tests or conformance cases cites; comments and skipped or unwritten tests do not count. */
export function findCitations(text: string): string[] {
  const effective = text
    .replace(/\/\*[\s\S]*?\*\//g, "")
    .replace(/(^|\s)\/\/.*$/gm, "$1")
    .replace(/\.(?:skip|todo|fails)\(\s*(["'`])(?:\\.|(?!\1)[^\\])*\1/g, "");
  return [...effective.matchAll(/\[((?:S\d+-[A-Z]+-[A-Za-z0-9-]+|(?:N-GIT|N-NET|F)-\d\d))\]/g)].map(
    (match) => match[1] ?? "",
  );
}

/** Says everything that is wrong between the requirements and the citations of each file. */
export function findGaps(
  requirements: readonly Requirement[],
  citations: ReadonlyMap<string, readonly string[]>,
): string[] {
  const cited = new Set([...citations.values()].flat());
  const known = new Map(requirements.map((requirement) => [requirement.id, requirement]));
  const gaps: string[] = [];
  for (const { id } of requirements.filter(({ id }, index) => requirements.findIndex((r) => r.id === id) !== index)) {
    gaps.push(`${id} is defined twice`);
  }
  for (const { id, superseded, later } of known.values()) {
    if (superseded === "" || later === "") gaps.push(`${id} has an empty reason`);
    if (superseded !== undefined && later !== undefined) gaps.push(`${id} is both superseded and to come`);
    if (superseded !== undefined && cited.has(id)) gaps.push(`${id} is superseded and still cited`);
    if (superseded === undefined && later === undefined && !cited.has(id)) gaps.push(`${id} has no test`);
    if (later !== undefined && cited.has(id)) gaps.push(`${id} is said to come with ${later} and is cited already`);
  }
  for (const [file, ids] of citations) {
    for (const id of ids) if (!known.has(id)) gaps.push(`${file} cites ${id}, which nobody asked for`);
  }
  return gaps;
}
