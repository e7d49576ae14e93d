/**
 * The image of a sandbox whose options name none, on backends whose images the user chooses: a public one that is small, has a shell and Node, and
 * gets security updates under this tag. The guest needs nothing of it.
 */
export const DEFAULT_IMAGE = "node:22-bookworm-slim";
