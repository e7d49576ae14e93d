import { NEW_FILE_MODE } from "../types.js";

/** In a mode: a regular file that is replaced keeps its own; `KEEPS_MODE` in `guest/guest.h`. */
const KEEPS_MODE = 0o1000000;

/** The mode of a file to write, as the guest reads it. */
export function modeForGuest(mode: number | undefined): number {
  return mode ?? NEW_FILE_MODE | KEEPS_MODE;
}
