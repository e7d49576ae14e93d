/* The directory that a command starts in. */
#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../guest.h"

/* Commands can rename directories at any time: so often is the name looked up again. */
#define ATTEMPTS 16

/* The name that the directory has at this moment, in the mount namespace that it was opened in. False with errno. */
static bool name_of(int directory, char *name, size_t room) {
  char link[32];
  snprintf(link, sizeof link, "/proc/self/fd/%d", directory);
  ssize_t length = readlink(link, name, room);
  if (length >= 0 && (size_t)length < room) {
    name[length] = 0;
    return true;
  }
  if (length >= 0) errno = ENAMETOOLONG;
  return false;
}

static bool is_here(int directory) {
  struct stat wanted, found;
  return fstat(directory, &wanted) == 0 && stat(".", &found) == 0 && found.st_dev == wanted.st_dev && found.st_ino == wanted.st_ino;
}

/* The descriptor leads to the guest's mount namespace: from there ".." leads to the guest's /proc, and the kernel would call the
 * directory "(unreachable)/...", so that programs which ask the kernel itself would find no current directory. So it is entered by
 * its name, and must be the one that was opened. */
int enter_directory(int directory, enum confinement how) {
  char name[4096];
  if (how != CONFINE_NAMESPACE) return fchdir(directory) == 0 ? 0 : errno;
  for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
    if (!name_of(directory, name, sizeof name)) return errno;
    if (chdir(name) == 0 && is_here(directory)) return 0;
  }
  return ENOENT;
}
