/** The longest that a call waits for a command: below the 60 seconds after which clients give up. */
export const LONGEST_WAIT = 45_000;
/** How often a client hears that a call goes on. */
export const PROGRESS_EVERY = 10_000;
/** Default bound of the text of one answer, in bytes. */
export const MAX_ANSWER = 30_000;
/** The most text of an error. Some clients cut it at 11 000 characters. */
export const MAX_ERROR = 8_000;
/** The largest image that is sent as an image. */
export const MAX_IMAGE = 1_000_000;
/** The largest message of a client. */
export const MAX_MESSAGE: number = 10 * 1024 * 1024;
/** Calls of one client at the same time. */
export const MAX_CALLS = 32;
/** Runs of one client at the same time. */
export const MAX_RUNS = 4;
/** Open sandboxes of one client. */
export const MAX_SANDBOXES = 8;
/** Sessions of one client over HTTP. */
export const MAX_SESSIONS = 32;
/** Requests of one client over HTTP that are open at the same time: its calls, and what it listens to. */
export const MAX_OPEN = 64;
