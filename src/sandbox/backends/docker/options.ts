import { posix } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { SandboxError } from "../../../../contracts/errors.js";
import {
  arrayOf,
  type Check,
  checkBoolean,
  checkOptions,
  checkPath,
  checkText,
  invalidArgument,
  oneOf,
  type Shape,
} from "../../../util/checks.js";
import type { SandboxOptions } from "../../types.js";
import type { DockerOptions } from "./docker-options.js";
import { checkImageName } from "./image/image-name.js";

const checkWorkDir: Check = (value, name) => {
  checkPath(value, name);
  if (!posix.isAbsolute(value)) throw invalidArgument(name, "an absolute path", value);
  if (/^\/(proc|sys|dev|\.glovebox)(\/|$)/.test(posix.normalize(value))) {
    throw invalidArgument(name, "a path that is not the kernel's or the guest's", value);
  }
};

const checkUser: Check = (value, name) => {
  if (typeof value === "string" && /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?$/.test(value))
    return;
  throw invalidArgument(name, "name, uid, name:group or uid:gid", value);
};

const checkHostname: Check = (value, name) => {
  if (typeof value === "string" && /^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/.test(value)) return;
  throw invalidArgument(name, "letters, digits and dashes, 63 at most", value);
};

const checkCapability: Check = (value, name) => {
  if (typeof value === "string" && /^[A-Z][A-Z_]{2,31}$/.test(value)) return;
  throw invalidArgument(name, "the name of a capability, for example NET_ADMIN", value);
};

const unsafeShape: Shape = new Map<string, Check>([
  ["mounts", checkBoolean],
  ["privileged", checkBoolean],
  ["dockerSocket", checkBoolean],
  ["hostNetwork", checkBoolean],
  ["hostPid", checkBoolean],
  ["hostIpc", checkBoolean],
  ["devices", arrayOf(checkPath)],
  ["capabilities", arrayOf(checkCapability)],
]);

const dockerShape: Shape = new Map<string, Check>([
  ["host", checkText as Check],
  ["context", checkText as Check],
  ["certPath", checkPath as Check],
  ["workDir", checkWorkDir],
  ["user", checkUser],
  ["hostname", checkHostname],
  ["pull", oneOf("missing", "never")],
  ["guest", oneOf("bind", "volume")],
  ["unsafe", (value, name) => checkOptions(value, unsafeShape, name)],
]);

/** Words by which a user may look for something that has another place here, or has to be asked for by name. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  privileged: "docker.unsafe.privileged",
  devices: "docker.unsafe.devices",
  capabilities: "docker.unsafe.capabilities",
  network: "the option network",
  mounts: "the option mounts, with docker.unsafe.mounts",
  binds: "the option mounts, with docker.unsafe.mounts",
  volumes: "the option mounts, with docker.unsafe.mounts",
  image: "the option image",
  env: "the option env",
};

/** Checks what only this backend knows of the options, and refuses what it cannot keep. */
export function checkDockerOptions(value: unknown): DockerOptions {
  const given = value as DockerOptions;
  for (const [name, place] of Object.entries(ELSEWHERE)) {
    if (name in given) {
      throw new SandboxError("invalid_argument", `Unknown option "${name}" in docker`, { hint: `it is ${place}` });
    }
  }
  checkOptions(given, dockerShape, "docker");
  if (given.host !== undefined && given.context !== undefined) {
    throw new SandboxError("invalid_argument", "Option docker.host does not go together with docker.context");
  }
  return given;
}

/** Refuses what a container cannot keep, and what must be asked for as unsafe; before anything is made. */
export function checkPossible(opts: SandboxOptions): void {
  if (opts.id === undefined && opts.image === undefined) {
    throw new SandboxError("invalid_argument", "The docker backend needs the option image", {
      hint: 'image: "debian:bookworm-slim"',
    });
  }
  if (opts.image !== undefined) checkImageName(opts.image, "image");
  if (opts.baseDir !== undefined) throw unsupported("baseDir", opts.baseDir, "a container has its own files");
  if (opts.workspace !== undefined) throw unsupported("workspace", opts.workspace, "files go in as a copy");
  if ((opts.mounts ?? []).length > 0 && opts.docker?.unsafe?.mounts !== true && opts.id === undefined) {
    throw new SandboxError("unsupported", "The docker backend mounts no host paths", {
      hint: "docker: { unsafe: { mounts: true } } allows it; refreshFromHost copies instead",
    });
  }
}

/** Refuses other mounts than a container was made with. */
export function checkMountsUnchanged({ mounts }: SandboxOptions, made: SandboxOptions["mounts"]): void {
  if (mounts === undefined || isDeepStrictEqual(mounts, made)) return;
  throw new SandboxError("unsupported", "The mounts of a container cannot be changed", {
    hint: "leave mounts out, or make another sandbox",
  });
}

function unsupported(option: string, value: string, reason: string): SandboxError {
  return new SandboxError("unsupported", `The docker backend can't enforce ${option} "${value}": ${reason}`);
}
