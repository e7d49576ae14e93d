/** Where a sandbox, and a jail that looks at one, find the sandbox git. */
export const INSIDE_GIT = "/glovebox/git";

/** Where both find the objects of the source, read-only. */
export const INSIDE_OBJECTS = "/glovebox/objects";
