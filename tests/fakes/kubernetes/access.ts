import { Refusal } from "./refusal.js";

/** What a user may do, as in a Role. */
export interface Rule {
  readonly groups: readonly string[];
  /** `pods`, `pods/exec` or `*`. */
  readonly resources: readonly string[];
  readonly verbs: readonly string[];
}

/** One who has a token. */
export interface User {
  readonly name: string;
  readonly rules: readonly Rule[];
  /** When the token stops to be good, as by `Date.now()`. */
  expires?: number;
}

/** What somebody wants to do. */
export interface Attempt {
  readonly verb: string;
  readonly group: string;
  /** With its subresource. */
  readonly resource: string;
  readonly namespace: string;
}

export const EVERYTHING: readonly Rule[] = [{ groups: ["*"], resources: ["*"], verbs: ["*"] }];

/** The user of a request's token; refuses one that is unknown or too old. */
export function authenticate(users: ReadonlyMap<string, User>, header: string | undefined): User {
  const user = users.get(/^Bearer (\S+)$/.exec(header ?? "")?.[1] ?? "");
  if (user === undefined || (user.expires ?? Number.POSITIVE_INFINITY) <= Date.now()) {
    throw new Refusal(401, "Unauthorized", "Unauthorized");
  }
  return user;
}

export function may({ rules }: User, { verb, group, resource }: Attempt): boolean {
  const has = (list: readonly string[], word: string): boolean => list.includes("*") || list.includes(word);
  return rules.some((rule) => has(rule.groups, group) && has(rule.resources, resource) && has(rule.verbs, verb));
}

/** Refuses what the user has no right to, in the server's own words: these are all that tells one 403 from another. */
export function authorize(user: User, attempt: Attempt, name = ""): void {
  if (may(user, attempt)) return;
  const { verb, group, resource, namespace } = attempt;
  const where = namespace === "" ? "at the cluster scope" : `in the namespace "${namespace}"`;
  const [plural = "", subresource] = resource.split("/");
  const what = `${plural}${name && ` "${name}"`} is forbidden`;
  const full = subresource === undefined ? plural : `${plural}/${subresource}`;
  throw new Refusal(
    403,
    "Forbidden",
    `${what}: User "${user.name}" cannot ${verb} resource "${full}" in API group "${group}" ${where}`,
    {
      ...(name && { name }),
      kind: plural,
    },
  );
}

/** A server asks for the right before it looks whether there is such a kind. */
export function authorizeUnknown(user: User, path: string): void {
  const [, group, namespace, resource] = /^\/apis\/([^/]+)\/[^/]+\/namespaces\/([^/]+)\/([^/]+)$/.exec(path) ?? [];
  if (group === undefined || namespace === undefined || resource === undefined) return;
  authorize(user, { verb: "list", group, resource, namespace });
}
