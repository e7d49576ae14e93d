import { isProgram } from "./trusted-programs.js";

/** The commands that install a package, by the program that each needs. */
const MANAGERS: readonly (readonly [program: string, ...commands: string[]])[] = [
  ["apt-get", "apt-get update", "apt-get install -y"],
  ["dnf", "dnf install -y"],
  ["pacman", "pacman -S --noconfirm"],
  ["zypper", "zypper install -y"],
  ["apk", "apk add"],
];

/** Who asks, and what the system has. */
interface Asker {
  readonly uid?: number | undefined;
  has?(program: string): boolean;
  /** What Debian calls the package, where that differs. */
  readonly inDebian?: string;
}

/** The command that installs a package, for this user of this system. */
export function installLine(
  name: string,
  { uid = process.getuid?.(), has = isInSystem, inDebian = name }: Asker = {},
): string {
  const [manager, ...commands] = MANAGERS.find(([program]) => has(program)) ?? [];
  if (manager === undefined) return `install ${name} with the package manager of this system`;
  const known = manager === "apt-get" ? inDebian : name;
  return asRoot([...commands.slice(0, -1), `${commands.at(-1)} ${known}`], { uid, has });
}

/** Commands as this user types them to run them as root. */
export function asRoot(
  commands: readonly string[],
  { uid = process.getuid?.(), has = isInSystem }: Asker = {},
): string {
  const sudo = uid !== 0 && has("sudo") ? "sudo " : "";
  const line = commands.map((command) => `${sudo}${command}`).join(" && ");
  return uid === 0 || sudo !== "" ? line : `as root: ${line}`;
}

/** Whether the system has a program of this name. */
export function isInSystem(program: string): boolean {
  const directories = ["/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin", "/snap/bin"];
  return directories.some((directory) => isProgram(`${directory}/${program}`));
}
