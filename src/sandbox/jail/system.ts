import { lstatSync, readlinkSync } from "node:fs";
import type { JailBind, JailSpec } from "./jail.js";

/** The read-only system: `/usr` and what belongs to it at the root. */
export function systemBinds(): Pick<JailSpec, "binds" | "symlinks"> {
  const binds: JailBind[] = [{ source: "/usr", target: "/usr" }];
  const symlinks: { path: string; target: string }[] = [{ path: "/var/run", target: "/run" }];
  for (const path of ["/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"]) {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    if (stat?.isSymbolicLink()) symlinks.push({ path, target: readlinkSync(path) });
    else if (stat?.isDirectory()) binds.push({ source: path, target: path });
  }
  return { binds, symlinks };
}

/** The files of `/etc` in a jail, by name. */
export function syntheticEtc(home: string): Record<string, string> {
  return {
    passwd: `root:x:0:0:root:/:/usr/sbin/nologin\nsandbox:x:1000:1000:sandbox:${home}:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n`,
    group: "root:x:0:\nsandbox:x:1000:\nnogroup:x:65534:\n",
    hosts: "127.0.0.1 localhost glovebox\n::1 localhost glovebox\n",
    hostname: "glovebox\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
  };
}
