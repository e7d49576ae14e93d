/**
 * Time limit, in milliseconds, of a hook that makes what `npm test` has made before any test: with a single file, the first
 * who needs it makes it, and that may take minutes.
 */
export const SET_UP_LIMIT: number = 20 * 60_000;
