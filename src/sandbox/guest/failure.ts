import { constants } from "node:os";
import { SandboxError, type SandboxErrorCode } from "../../../contracts/errors.js";

/** The guest's own error numbers, next to errno values (`guest/guest.h`). */
export const ESCAPES = 10001;
const NOT_REGULAR = 10002;
/** The sandbox has no user with the name that a command should run as. */
export const NO_USER = 10003;

const { errno } = constants;
const CODES = new Map<number, [SandboxErrorCode, string]>([
  [ESCAPES, ["path_confinement", "leads outside"]],
  [NOT_REGULAR, ["not_regular_file", "is not a regular file"]],
  [errno.ENOENT, ["not_found", "does not exist"]],
  [errno.ENOTDIR, ["invalid_path", "is not a directory"]],
  [errno.EEXIST, ["conflict", "already exists"]],
  [errno.EISDIR, ["not_regular_file", "is a directory"]],
  [errno.EBUSY, ["conflict", "is in use: something is mounted there"]],
  [errno.ENOTEMPTY, ["conflict", "is not empty"]],
  [errno.ELOOP, ["invalid_path", "can't be followed: its links form a loop, or lead to what a process has open"]],
  [errno.ENAMETOOLONG, ["invalid_path", "has a name that is too long"]],
  [errno.EACCES, ["permission_denied", "may not be used"]],
  [errno.EPERM, ["permission_denied", "may not be used"]],
  [errno.EROFS, ["permission_denied", "is read-only"]],
  [errno.ENOSPC, ["no_space", "does not fit: no space left"]],
  [errno.EDQUOT, ["no_space", "does not fit: no space left"]],
  [errno.E2BIG, ["limit_exceeded", "has too many entries"]],
  [errno.EAGAIN, ["unavailable", "can't be processed now: too many processes or calls"]],
  [errno.ENOMEM, ["unavailable", "can't be processed now: no memory"]],
  [errno.EMFILE, ["unavailable", "can't be processed now: too many open files"]],
]);

/** The error for an errno, or for one of the guest's own numbers, about `subject`. */
export function errorFor(number: number, subject: string): SandboxError {
  if (number === ESCAPES) {
    return new SandboxError("path_confinement", `path confinement violation: ${subject} is outside base directory`);
  }
  if (number === NO_USER) return new SandboxError("not_found", `There is no user "${subject}" in the sandbox`);
  const [code, text] = CODES.get(number) ?? ["internal", `failed with error ${number}`];
  return new SandboxError(code, `${subject} ${text}`);
}

/** Parses the body of an ANS_FAIL. */
export function failure(body: Buffer): SandboxError {
  return new GuestFailure(body.readUInt32LE(0), body.toString("utf8", 4));
}

/** A failed call. The caller knows the path better than the guest and repeats the error with it by `about`. */
export class GuestFailure extends SandboxError {
  readonly number: number;
  /** What the guest named, usually the path of the request. */
  readonly subject: string;

  constructor(number: number, subject: string) {
    const error = errorFor(number, subject);
    super(error.code, error.message);
    this.number = number;
    this.subject = subject;
  }
}

/** Exit codes of the archive calls (`guest/files/tar.h`). */
export function archiveError(exitCode: number, detail: string): SandboxError {
  const subject = detail.trim() || "the archive";
  switch (exitCode) {
    case 200:
      return errorFor(ESCAPES, subject);
    case 201:
      return errorFor(NOT_REGULAR, subject);
    case 202:
      return new SandboxError("limit_exceeded", `${subject} does not fit: the archive is too large`);
    case 203:
      return new SandboxError("invalid_argument", `the archive is broken at ${subject}`);
    default:
      return errorFor(exitCode, subject);
  }
}
