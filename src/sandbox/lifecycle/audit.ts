import { realpathSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { SandboxError } from "../../../contracts/errors.js";
import type { SandboxOptions } from "../../../contracts/sandbox.js";
import type { Capabilities } from "../../../contracts/types.js";
import { isWithin } from "../../machine/system-folders.js";
import { reasonFor } from "../capabilities.js";
import { checkAuditFile } from "../egress.js";

/** The options with the path of the audit log as it is from any directory. */
export function withAbsoluteAudit(opts: SandboxOptions): SandboxOptions {
  return opts.audit === undefined ? opts : { ...opts, audit: resolve(opts.audit) };
}

/** Throws if an audit log can't be kept for a sandbox: nothing of its network would be seen, or commands could change the file. */
export function checkAudit(audit: string, opts: SandboxOptions, able: Capabilities, backend: string): void {
  if (able.liveNetwork !== true) {
    const why = reasonFor("liveNetwork", able);
    throw new SandboxError("unsupported", `The ${backend} backend can't write an audit log (audit "${audit}")${why}`);
  }
  if (opts.network === "full") {
    throw new SandboxError("unsupported", `Option audit ("${audit}") does not go together with network "full"`, {
      hint: "connections of an unrestricted network don't pass through the proxy; list the hosts in network.allow",
    });
  }
  const place = realOf(dirname(audit));
  const { baseDir, mounts = [] } = opts;
  const writable = [baseDir, ...mounts.flatMap(({ source, writable: isWritable }) => (isWritable ? source : []))];
  const inside = writable.find((path) => path !== undefined && isWithin(place, realOf(path)));
  if (inside !== undefined) {
    throw new SandboxError("invalid_argument", `Option audit: "${audit}" is in ${inside}, where commands can write`, {
      hint: "put it in a directory that the sandbox does not see",
    });
  }
  checkAuditFile(audit);
}

function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}
