import type { Finding } from "../../../../contracts/finding.js";

/** The settings by which systems deny user namespaces to ordinary users, and the value that allows them. */
const SWITCHES: readonly (readonly [setting: string, allowed: RegExp, why: string])[] = [
  ["kernel.apparmor_restrict_unprivileged_userns", /^0$/, "AppArmor denies them to programs without a profile"],
  ["kernel.unprivileged_userns_clone", /^1$/, "the kernel denies them to ordinary users"],
];

/** Whether user namespaces can be made, according to the kernel settings. `read` returns a file's text or undefined. */
export function namespaceFinding(read: (path: string) => string | undefined, isRoot: boolean): Finding {
  const name = "user namespaces";
  const most = read("/proc/sys/user/max_user_namespaces")?.trim();
  if (most === undefined) {
    return { name, status: "missing", detail: "the kernel was built without them", fix: "use the docker backend" };
  }
  if (most === "0") {
    const fix = "sudo sysctl -w user.max_user_namespaces=16384";
    return { name, status: "missing", detail: "user.max_user_namespaces is 0", fix };
  }
  for (const [setting, allowed, why] of SWITCHES) {
    const value = read(`/proc/sys/${setting.replaceAll(".", "/")}`)?.trim();
    if (value === undefined || allowed.test(value) || isRoot) continue;
    const fix = `sudo sysctl -w ${setting}=${setting.endsWith("clone") ? 1 : 0}`;
    return { name, status: "missing", detail: `${setting} is ${value}: ${why}`, fix };
  }
  return { name, status: "ok", detail: `at most ${most}${isRoot ? "; root needs no setting" : ""}` };
}
