import { posix } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { SandboxError } from "../../../../contracts/errors.js";
import * as is from "../../../util/schema.js";
import { check, invalidArgument, type Parser, parser, type Schema } from "../../../util/schema.js";
import type { SandboxOptions } from "../../types.js";
import type { DockerOptions } from "./docker-options.js";
import { imageName } from "./image/image-name.js";

const workDir = is.and(is.path, (value, name) => {
  if (!posix.isAbsolute(value)) throw invalidArgument(name, "an absolute path", value);
  if (/^\/(proc|sys|dev|\.glovebox)(\/|$)/.test(posix.normalize(value))) {
    throw invalidArgument(name, "a path that is not the kernel's or the guest's", value);
  }
});

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

const schema: Schema<DockerOptions> = is.object(
  {
    host: is.text,
    context: is.text,
    certPath: is.path,
    workDir,
    user: is.matching(
      /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63})?$/,
      "name, uid, name:group or uid:gid",
    ),
    hostname: is.matching(/^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$/, "letters, digits and dashes, 63 at most"),
    pull: is.oneOf("missing", "never"),
    guest: is.oneOf("bind", "volume"),
    unsafe: is.object({
      mounts: is.flag,
      privileged: is.flag,
      dockerSocket: is.flag,
      hostNetwork: is.flag,
      hostPid: is.flag,
      hostIpc: is.flag,
      devices: is.list(is.path),
      capabilities: is.list(is.matching(/^[A-Z][A-Z_]{2,31}$/, "the name of a capability, for example NET_ADMIN")),
    }),
  },
  {},
  { elsewhere: ELSEWHERE },
);

/** What only this backend knows of the options. */
export const dockerOptions: Parser<DockerOptions> = parser(
  "docker",
  is.and(schema, ({ host, context }) => {
    if (host === undefined || context === undefined) return;
    throw new SandboxError("invalid_argument", "Option docker.host does not go together with docker.context");
  }),
);

/** Refuses what a container can't enforce, and what must be asked for as unsafe; before anything is made. */
export function checkPossible(opts: SandboxOptions): void {
  if (opts.image !== undefined) check(opts.image, imageName, "image");
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

/** What weakens the isolation. Mounts are visible in the option `mounts` itself. */
export function unsafeOptions({ docker }: SandboxOptions): string[] {
  const { mounts: _, ...rest } = docker?.unsafe ?? {};
  const isOn = (value: boolean | readonly string[]): boolean => (typeof value === "boolean" ? value : value.length > 0);
  return Object.entries(rest).flatMap(([name, value]) => (isOn(value) ? [`docker.unsafe.${name}`] : []));
}
