import { existsSync, lstatSync, readlinkSync } from "node:fs";

/** The bubblewrap command that you would write by hand to run a program in its own directory. */
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
