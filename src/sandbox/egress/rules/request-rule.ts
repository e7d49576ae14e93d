import { decodeBytes } from "./lenient-path.js";
import { coversPath, matchesPath, type PathPattern } from "./path-pattern.js";
import { lenient, type RequestPath } from "./request-path.js";

/** Which requests to a host a rule is about. */
export interface RequestRule {
  /** Undefined: all. */
  readonly methods: readonly string[] | undefined;
  /** Undefined: all. With `git`: paths of repositories. */
  readonly paths: readonly PathPattern[] | undefined;
  readonly git: "fetch" | "push" | undefined;
}

/** A request as rules see it. */
export interface CheckedRequest {
  readonly method: string;
  /** Undefined: it is not clear. */
  readonly path: RequestPath | undefined;
}

type GitService = "fetch" | "push";

interface GitRequest {
  readonly service: GitService;
  readonly repository: readonly string[];
}

/** A map, because an object also has the names of JavaScript's own, such as `constructor`. */
const SERVICES: ReadonlyMap<string, GitService> = new Map([
  ["git-upload-pack", "fetch"],
  ["git-receive-pack", "push"],
]);

/** Whether the path of a request matters to a rule. */
export function looksAtPath({ paths, git }: RequestRule): boolean {
  return paths !== undefined || git !== undefined;
}

/** Whether a rule allows a request. What is not clear is not allowed. */
export function allowsRequest({ methods, paths, git }: RequestRule, { method, path }: CheckedRequest): boolean {
  if (methods !== undefined && !hasMethod(methods, method)) return false;
  if (paths === undefined && git === undefined) return true;
  if (path === undefined) return false;
  if (git === undefined) return isAmong(paths, path.segments);
  const asked = gitRequest(method, path);
  return asked !== undefined && (asked.service === "fetch" || git === "push") && isAmong(paths, asked.repository);
}

/** Whether a rule denies a request, however a server might understand it. */
export function deniesRequest({ methods, paths, git }: RequestRule, { method, path }: CheckedRequest): boolean {
  if (methods !== undefined && !hasMethod(methods, method.toUpperCase())) return false;
  if (path === undefined) return true;
  const wide = paths?.map((pattern) => ({ ...pattern, segments: lenient(pattern.segments) }));
  const segments = lenient(path.segments);
  if (git === undefined) return isAmong(wide, segments);
  return namedServices(path, segments).includes(git) && isAmong(wide, repositoryOf(segments));
}

/**
 * Whether a rule is about all requests that another is about, and certainly so. Undefined: all requests. To allow pushing is to allow fetching, too; to
 * deny it is not.
 */
export function coversRequests(
  bound: RequestRule | undefined,
  asked: RequestRule | undefined,
  verb: "allow" | "deny",
): boolean {
  if (bound === undefined) return true;
  if (asked === undefined) return bound.methods === undefined && bound.git === undefined && bound.paths === undefined;
  const arePathsCovered =
    bound.paths === undefined ||
    (asked.paths?.every((path) => bound.paths?.some((wide) => coversPath(wide, path))) ?? false);
  if (bound.git !== undefined) {
    return arePathsCovered && (asked.git === bound.git || (verb === "allow" && asked.git === "fetch"));
  }
  if (asked.git === undefined) return arePathsCovered && areCovered(bound.methods, asked.methods);
  // The paths of a rule for git are those of repositories, which a rule without it knows nothing of.
  return bound.paths === undefined && areCovered(bound.methods, ["GET", "POST"]);
}

function areCovered(bound: readonly string[] | undefined, asked: readonly string[] | undefined): boolean {
  if (bound === undefined) return true;
  return asked?.every((method) => hasMethod(bound, method)) ?? false;
}

/** HEAD gives less than GET. */
function hasMethod(methods: readonly string[], method: string): boolean {
  return methods.includes(method) || (method === "HEAD" && methods.includes("GET"));
}

function isAmong(patterns: readonly PathPattern[] | undefined, segments: readonly string[]): boolean {
  return patterns === undefined || patterns.some((pattern) => matchesPath(pattern, segments));
}

/** What a git client asks for in the smart protocol; undefined for every other request. */
export function gitRequest(method: string, { segments, query }: RequestPath): GitRequest | undefined {
  const last = segments.at(-1) ?? "";
  if (method === "GET" && last === "refs" && segments.at(-2) === "info") {
    const service = SERVICES.get(/^service=(git-[a-z-]+)$/.exec(query)?.[1] ?? "");
    return service && { service, repository: segments.slice(0, -2) };
  }
  const service = method === "POST" && query === "" ? SERVICES.get(last) : undefined;
  return service && { service, repository: segments.slice(0, -1) };
}

/** The services that a request could be for. */
function namedServices({ query }: RequestPath, segments: readonly string[]): GitService[] {
  if (segments.at(-1) === "refs" && segments.at(-2) === "info") {
    const named = [...SERVICES].filter(([name]) => decodeBytes(query).toLowerCase().includes(name));
    return named.length === 0 ? ["fetch"] : named.map(([, service]) => service);
  }
  return [...SERVICES].flatMap(([name, service]) => (segments.at(-1) === name ? [service] : []));
}

function repositoryOf(segments: readonly string[]): readonly string[] {
  return segments.slice(0, segments.at(-1) === "refs" ? -2 : -1);
}
