/* Copies one file, link or tree inside the root. It is made in a temporary directory beside its place and renamed when it is complete. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../guest.h"
#include "tar.h"

#define MAX_LEVELS 4096

bool is_within(int directory, int tree) {
  struct stat wanted, here, below = {0};
  if (fstat(tree, &wanted) != 0) return false;
  int fd = openat(directory, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
  bool found = false;
  for (int level = 0; fd >= 0 && level < MAX_LEVELS && !found; level++) {
    if (fstat(fd, &here) != 0) break;
    found = here.st_dev == wanted.st_dev && here.st_ino == wanted.st_ino;
    if (level > 0 && here.st_dev == below.st_dev && here.st_ino == below.st_ino) break; /* nothing is above it */
    below = here;
    int above = openat(fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    close(fd);
    fd = above;
  }
  if (fd >= 0) close(fd);
  return found;
}

/* A directory that cannot be written cannot get another parent either, so it is writable for a moment. */
static int move_out(int made, const char *name, int to, const char *new_name) {
  if (renameat(made, name, to, new_name) == 0) return 0;
  int error = errno;
  struct stat stat;
  int fd = error == EACCES ? openat(made, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
  if (fd < 0) return error;
  if (fstat(fd, &stat) == 0 && fchmod(fd, 0700) == 0) {
    error = renameat(made, name, to, new_name) == 0 ? 0 : errno;
    if (!error && fchmod(fd, stat.st_mode & 0777) != 0) error = errno;
  }
  close(fd);
  return error;
}

static int check_source(int from, const char *name, int to, bool recursive) {
  struct stat stat;
  if (fstatat(from, name, &stat, AT_SYMLINK_NOFOLLOW) != 0) return errno;
  if (!S_ISDIR(stat.st_mode)) return S_ISREG(stat.st_mode) || S_ISLNK(stat.st_mode) ? 0 : TAR_NOT_REGULAR;
  if (!recursive) return TAR_NOT_REGULAR;
  int tree = openat(from, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (tree < 0) return errno;
  bool into_itself = is_within(to, tree);
  close(tree);
  return into_itself ? EINVAL : 0;
}

int copy_name(int from, const char *name, int to, const char *new_name, const char *temporary, bool recursive) {
  int error = check_source(from, name, to, recursive);
  if (error) return error;
  if (mkdirat(to, temporary, 0700) != 0) return errno;
  int made = openat(to, temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (made < 0) return errno;
  const char *where = "";
  error = replicate_one(from, made, name, &where);
  if (error) dprintf(2, "%.200s", where);
  else error = move_out(made, name, to, new_name);
  close(made);
  if (!error && unlinkat(to, temporary, AT_REMOVEDIR) != 0) error = errno;
  return error;
}
