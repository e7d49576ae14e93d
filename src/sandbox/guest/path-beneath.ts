/** A path as seen from the directory above it; a path elsewhere stays absolute, which the guest refuses unless the call is for any path. */
export function pathBeneath(directory: string, path: string): string {
  if (path === directory) return "";
  const start = directory === "/" ? directory : `${directory}/`;
  return path.startsWith(start) ? path.slice(start.length) : path;
}
