import { existsSync, lstatSync, readlinkSync } from "node:fs";

/** The bubblewrap command that a person would write by hand to run a program in a directory of its own. */
export function bwrapCommand(directory, argv) {
  const roots = ["/bin", "/sbin", "/lib", "/lib64"].filter((path) => existsSync(path));
  const shown = roots.flatMap((path) =>
    lstatSync(path).isSymbolicLink() ? ["--symlink", readlinkSync(path), path] : ["--ro-bind", path, path],
  );
  return [
    "bwrap",
    [
      ...["--unshare-all", "--die-with-parent", "--new-session", "--ro-bind", "/usr", "/usr"],
      ...shown,
      ...["--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache"],
      ...["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", directory, directory, "--chdir", directory],
      ...["--", ...argv],
    ],
  ];
}
