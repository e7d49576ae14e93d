/** What GitHub acts on in a title or a commit message, each up to the place where a space makes it plain text. */
const LIVE: readonly RegExp[] = [
  /(?<![A-Za-z0-9_])@(?=[A-Za-z0-9])/g, // a mention of a user or a team
  /#(?=\d)/g, // an issue, also of another repository
  /\bGH-(?=\d)/gi,
  /\/(?:issues|pulls?|discussions)\/(?=\d)/gi, // an issue by its address
  /\[(?=(?:skip ci|ci skip|no ci|skip actions|actions skip)\])/gi, // a commit whose checks do not run
];

/** Writes a text so that it notifies nobody, closes nothing and skips no checks, and people still read it as it was. */
export function toInertReferences(text: string): string {
  return LIVE.reduce((inert, live) => inert.replace(live, "$& "), text);
}
