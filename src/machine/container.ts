import { existsSync, readFileSync } from "node:fs";

/** The container that this process runs in, and what of it decides whether a sandbox can be opened inside. */
export interface Container {
  readonly engine: "Docker" | "Podman" | "unknown";
  /** Whether a seccomp filter is on. The usual one forbids namespaces. */
  readonly isFiltered: boolean;
  /** Whether parts of `/proc` are hidden or read-only: then the kernel lets nobody mount another one. */
  readonly hasMaskedProc: boolean;
  /** The AppArmor profile, unless it is `unconfined`. The usual one forbids mounts. */
  readonly profile?: string;
}

/** What is looked at, so that tests can show other machines. */
export interface Look {
  exists(path: string): boolean;
  /** The text of a file, or undefined. */
  read(path: string): string | undefined;
}

/** The container that this process runs in; undefined outside of one. */
export function findContainer(look: Look = THIS_MACHINE): Container | undefined {
  const engine = engineOf(look);
  if (engine === undefined) return undefined;
  const profile = /^(.*?)(?: \(\w+\))?\s*$/.exec(look.read("/proc/self/attr/current") ?? "")?.[1] ?? "";
  return {
    engine,
    isFiltered: /^Seccomp:\s*2$/m.test(look.read("/proc/self/status") ?? ""),
    hasMaskedProc: /^\d+ \d+ \S+ \S+ \/proc\/(?!sys\/fs\/binfmt_misc)\S+ /m.test(
      look.read("/proc/self/mountinfo") ?? "",
    ),
    ...(profile !== "" && profile !== "unconfined" && profile !== "kernel" && { profile }),
  };
}

/** The command that starts such a container so that a sandbox can be opened inside, with further options. */
export function containerCommand({ engine, profile }: Container, ...more: readonly string[]): string {
  const isPodman = engine === "Podman";
  const security = ["seccomp=unconfined", isPodman ? "unmask=ALL" : "systempaths=unconfined"];
  if (profile !== undefined) security.push("apparmor=unconfined");
  const options = [...security.map((option) => `--security-opt ${option}`), ...more];
  return [isPodman ? "podman run" : "docker run", ...options].join(" ");
}

function engineOf({ exists, read }: Look): Container["engine"] | undefined {
  const mounts = read("/proc/self/mountinfo") ?? "";
  // Every engine mounts these files. A virtual machine may have been made from an image, with the engine's mark still in it.
  if (/ \/etc\/(hostname|hosts|resolv\.conf) /.test(mounts)) {
    if (exists("/run/.containerenv")) return "Podman";
    if (exists("/.dockerenv")) return "Docker";
    if (/\/(containers|sandboxes|pods)\/\S+ \/etc\/(hostname|hosts|resolv\.conf) /.test(mounts)) return "unknown";
  }
  const groups = read("/proc/self/cgroup") ?? "";
  return /\/(docker|libpod|crio)[-/][0-9a-f]{12}|\/(kubepods|lxc)[-/.]|cri-containerd/.test(groups)
    ? "unknown"
    : undefined;
}

const THIS_MACHINE: Look = {
  exists: existsSync,
  read(path) {
    try {
      return readFileSync(path, "utf8");
    } catch {
      return undefined;
    }
  },
};
