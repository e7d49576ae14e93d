/** Folders of every Linux system. Nobody works in them. */
const SYSTEM_FOLDERS = [
  "/bin",
  "/boot",
  "/dev",
  "/etc",
  "/lib",
  "/lib32",
  "/lib64",
  "/libx32",
  "/proc",
  "/run",
  "/sbin",
  "/sys",
  "/usr",
  "/var/run",
];

/** Whether a path is a directory or something in it. Both are absolute and normalised. */
export function isWithin(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === "/" ? directory : `${directory}/`);
}

/** The system's folder that a path is in, if it is in one. */
export function systemFolderAround(path: string): string | undefined {
  return SYSTEM_FOLDERS.find((folder) => isWithin(path, folder));
}

/** A system's folder that is in a path, if there is one. */
export function systemFolderIn(path: string): string | undefined {
  return SYSTEM_FOLDERS.find((folder) => isWithin(folder, path));
}
