import type { Limits, Mount } from "../../../../contracts/types.js";
import { type EngineMount, GUEST_PATH } from "./deliver-guest.js";
import type { DockerOptions } from "./docker-options.js";
import { CONTAINER_LABEL } from "./labels.js";

/** How a container is created. Plain data, which is recorded to create or start it again. */
export interface ContainerPlan {
  /** Chosen before the container is created, so that it can be found even if that call fails. */
  readonly name: string;
  /** Name or id. */
  readonly image: string;
  /** Owner of the files and default user of commands; empty for root. */
  readonly user: string;
  /** Absolute. Created when it doesn't exist. */
  readonly workDir: string;
  readonly hostname?: string;
  /** `none`, or a network and the names of the container on it. */
  readonly network: "none" | { readonly name: string; readonly aliases: readonly string[] };
  /** Name servers for names outside the network. Default: those of the engine's machine. */
  readonly dns?: readonly string[];
  readonly limits: Limits;
  /** `none`: commands have no capabilities. `service`: Docker's default ones, except those that can harm others on a network. */
  readonly capabilities: "none" | "service";
  /** Whether the container stays when its guest ends. */
  readonly isKept: boolean;
  readonly labels: Readonly<Record<string, string>>;
  readonly mounts?: readonly Mount[];
  readonly unsafe?: NonNullable<DockerOptions["unsafe"]>;
  readonly guest?: "bind" | "volume";
}

/** The guest must be able to become any user, to kill any process and to write any file. */
const GUEST_CAPABILITIES = ["SETUID", "SETGID", "KILL", "CHOWN", "DAC_OVERRIDE", "FOWNER"];
/** Docker's default without NET_RAW and MKNOD. */
const SERVICE_CAPABILITIES = ["FSETID", "SETFCAP", "SETPCAP", "NET_BIND_SERVICE", "SYS_CHROOT", "AUDIT_WRITE"];

/** Default limits. */
const DEFAULT_PIDS = 4096;
const DEFAULT_MEMORY: number = 4 * 1024 ** 3;

/** The body of the engine's create call. */
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
    // It still has an empty network of its own. Otherwise the engine creates one in a second process, which doubles the time.
    ...(mode === "none" && { NetworkDisabled: true }),
    Healthcheck: { Test: ["NONE"] },
    Tty: false,
    OpenStdin: true,
    StdinOnce: true,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    Labels: { ...plan.labels, [CONTAINER_LABEL]: plan.name },
    HostConfig: {
      AutoRemove: !plan.isKept,
      NetworkMode: mode,
      // For the guest's resolver, and for servers of commands. Docker does this by itself, Podman doesn't.
      ...(mode === "none" && { Sysctls: { "net.ipv4.ip_unprivileged_port_start": "0" } }),
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
