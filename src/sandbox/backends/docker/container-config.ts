import type { Limits, Mount } from "../../../../contracts/types.js";
import { type EngineMount, GUEST_PATH } from "./deliver-guest.js";
import type { DockerOptions } from "./docker-options.js";

/** How a container is made. All of it can be written down and used again. */
export interface ContainerPlan {
  /** Chosen by us, so that it can be found whatever becomes of the call that makes it. */
  readonly name: string;
  /** Name or id. */
  readonly image: string;
  /** Whose the files are, and who commands run as by default; as Docker has it, empty for root. */
  readonly user: string;
  /** Absolute; made when absent. */
  readonly workDir: string;
  readonly hostname?: string;
  /** `none`, or the name of a network with the names that the container has on it. */
  readonly network: "none" | { readonly name: string; readonly aliases: readonly string[] };
  /** Who is asked for names that the network itself does not know. Default: as the engine's machine has it. */
  readonly dns?: readonly string[];
  readonly limits: Limits;
  /** `none`: commands have no capabilities. `service`: Docker's own, without those that harm others on a network. */
  readonly capabilities: "none" | "service";
  /** Whether the container stays when its guest ends. */
  readonly isKept: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly mounts?: readonly Mount[];
  readonly unsafe?: NonNullable<DockerOptions["unsafe"]>;
  readonly guest?: "bind" | "volume";
}

/** What the guest needs: to become any user, to end any process, and to write any file. */
const GUEST_CAPABILITIES = ["SETUID", "SETGID", "KILL", "CHOWN", "DAC_OVERRIDE", "FOWNER"];
/** Docker's default without NET_RAW and MKNOD. */
const SERVICE_CAPABILITIES = ["FSETID", "SETFCAP", "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "AUDIT_WRITE"];

/** Bounds of a container that nobody gave bounds. */
const DEFAULT_PIDS = 4096;
const DEFAULT_MEMORY: number = 4 * 1024 ** 3;

/** What the engine is asked for. */
export function containerConfig(plan: ContainerPlan, guest: EngineMount): object {
  const { unsafe = {}, limits, network } = plan;
  const memory = limits.memory ?? DEFAULT_MEMORY;
  const aliases = typeof network === "string" ? undefined : network;
  const mode = unsafe.hostNetwork === true ? "host" : (aliases?.name ?? network);
  return {
    Image: plan.image,
    Entrypoint: [GUEST_PATH, "serve", ...(mode === "none" ? ["--loopback-only"] : []), "--contained", plan.user || "0"],
    Cmd: [plan.workDir],
    User: "0:0",
    WorkingDir: "/",
    ...(plan.hostname !== undefined && unsafe.hostNetwork !== true && { Hostname: plan.hostname }),
    // Its own empty network all the same. Without this the engine makes one in a second process, which takes as long as the rest.
    ...(mode === "none" && { NetworkDisabled: true }),
    Healthcheck: { Test: ["NONE"] },
    Tty: false,
    OpenStdin: true,
    StdinOnce: true,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Labels: plan.labels,
    HostConfig: {
      AutoRemove: !plan.isKept,
      NetworkMode: mode,
      ...(plan.dns && { Dns: plan.dns }),
      CapDrop: ["ALL"],
      CapAdd: [
        ...GUEST_CAPABILITIES,
        ...(plan.capabilities === "service" ? SERVICE_CAPABILITIES : []),
        ...(unsafe.capabilities ?? []),
      ],
      SecurityOpt: ["no-new-privileges"],
      LogConfig: { Type: "none", Config: {} },
      PidsLimit: limits.pids ?? DEFAULT_PIDS,
      Memory: memory,
      MemorySwap: memory,
      ...(limits.cpus !== undefined && { NanoCpus: Math.round(limits.cpus * 1e9) }),
      Ulimits: [{ Name: "core", Soft: 0, Hard: 0 }],
      Init: false,
      IpcMode: unsafe.hostIpc === true ? "host" : "private",
      ...(unsafe.hostPid === true && { PidMode: "host" }),
      ...(unsafe.privileged === true && { Privileged: true }),
      ...(unsafe.devices && { Devices: unsafe.devices.map(toDevice) }),
      Mounts: [guest, ...mountsOf(plan)],
    },
    ...(aliases && { NetworkingConfig: { EndpointsConfig: { [aliases.name]: { Aliases: aliases.aliases } } } }),
  };
}

function mountsOf({ mounts = [], unsafe }: ContainerPlan): EngineMount[] {
  const asked = mounts.map(
    ({ source, target = source, writable = false }): EngineMount => ({
      Type: "bind",
      Source: source,
      Target: target,
      ReadOnly: !writable,
    }),
  );
  const socket = "/var/run/docker.sock";
  if (unsafe?.dockerSocket === true) asked.push({ Type: "bind", Source: socket, Target: socket, ReadOnly: false });
  return asked;
}

function toDevice(path: string): object {
  return { PathOnHost: path, PathInContainer: path, CgroupPermissions: "rwm" };
}
