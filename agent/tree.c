/* Removing a whole tree by descriptors: no name is ever looked up twice, no link is ever followed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent.h"

int remove_contents(int directory) {
  int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  DIR *entries = fdopendir(fd);
  if (!entries) return ENOMEM;
  int error = 0;
  for (struct dirent *entry; (entry = readdir(entries));) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    int failed = remove_tree(fd, entry->d_name);
    if (failed && failed != ENOENT) error = failed;
  }
  closedir(entries);
  return error;
}

int remove_tree(int parent, const char *name) {
  if (unlinkat(parent, name, 0) == 0) return 0;
  struct stat stat;
  if (fstatat(parent, name, &stat, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  if (!S_ISDIR(stat.st_mode)) return EPERM;
  int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno == EACCES && fchmodat(parent, name, 0700, 0) == 0)
    fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0) return errno;
  if ((stat.st_mode & 0700) != 0700) fchmod(fd, 0700);
  int error = remove_contents(fd);
  close(fd);
  if (unlinkat(parent, name, AT_REMOVEDIR) == 0) return 0;
  return error ? error : errno;
}
