/* Removes a whole tree by descriptors: no name is looked up twice, no link is followed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../guest.h"

/* Commands can make a tree deeper than there are descriptors and stack for. What is deeper than this is moved to the top of the
 * tree that is being removed, and removed from there. */
#define MAX_DEPTH 100

static int top = -1;
static unsigned long moved_up;

static int move_up(int parent, const char *name) {
  char up[64];
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) random = (uint64_t)now_ms();
  snprintf(up, sizeof up, ".gb-%016llx-%lu", (unsigned long long)random, moved_up);
  if (renameat(parent, name, top, up) != 0) return errno;
  moved_up++;
  return 0;
}

/* Opens a directory, whatever its permissions, if it is ours. */
static int force_open(int parent, const char *name) {
  int handle = openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (handle < 0) return handle;
  struct stat stat;
  char path[64];
  snprintf(path, sizeof path, "/proc/self/fd/%d", handle);
  if (fstat(handle, &stat) == 0 && (stat.st_mode & 0700) != 0700) chmod(path, 0700);
  int fd = openat(handle, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), error = errno;
  close(handle);
  errno = error;
  return fd;
}

static int remove_entries(int fd, int depth);

static int remove_one(int parent, const char *name, int depth) {
  if (unlinkat(parent, name, 0) == 0) return 0;
  struct stat stat;
  if (fstatat(parent, name, &stat, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  if (!S_ISDIR(stat.st_mode)) return EPERM;
  int fd = force_open(parent, name);
  if (fd < 0) return errno;
  if (depth >= MAX_DEPTH) {
    close(fd);
    return unlinkat(parent, name, AT_REMOVEDIR) == 0 ? 0 : move_up(parent, name);
  }
  int error = remove_entries(fd, depth + 1);
  if (unlinkat(parent, name, AT_REMOVEDIR) == 0) return 0;
  return error ? error : errno;
}

/* Closes `fd`. */
static int remove_entries(int fd, int depth) {
  DIR *entries = fdopendir(fd);
  if (!entries) {
    close(fd);
    return ENOMEM;
  }
  int error = 0;
  for (;;) {
    errno = 0;
    struct dirent *entry = readdir(entries);
    if (!entry) {
      if (errno) error = errno;
      break;
    }
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    int failed = remove_one(fd, entry->d_name, depth);
    if (failed && failed != ENOENT) error = failed;
  }
  closedir(entries);
  return error;
}

int remove_contents(int directory) {
  top = directory;
  for (;;) {
    unsigned long before = moved_up;
    int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) return errno;
    int error = remove_entries(fd, 0);
    if (moved_up == before) return error;
  }
}

int remove_tree(int parent, const char *name) {
  if (unlinkat(parent, name, 0) == 0) return 0;
  struct stat stat;
  if (fstatat(parent, name, &stat, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  if (!S_ISDIR(stat.st_mode)) return EPERM;
  int fd = force_open(parent, name);
  if (fd < 0) return errno;
  int error = remove_contents(fd);
  close(fd);
  if (unlinkat(parent, name, AT_REMOVEDIR) == 0) return 0;
  return error ? error : errno;
}
