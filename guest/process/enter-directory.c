/* The directory that a command starts in. */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
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

/* As many links as the kernel follows in one path. */
#define MAX_LINKS 40

/* Puts the target of a link before the rest of the path. False with errno: ELOOP for a link of /proc to what a process has open. The other links
 * of /proc lead to its own directories, by a relative path such as "self/net". */
static bool put_target(int link, char *path, const char *rest, size_t room) {
  char target[4096];
  struct statfs system;
  ssize_t length = readlinkat(link, "", target, sizeof target);
  if (length <= 0 || fstatfs(link, &system) != 0) return false;
  bool is_open_thing = system.f_type == PROC_SUPER_MAGIC && !strchr("0123456789s", target[0]);
  size_t left = strlen(rest);
  errno = is_open_thing ? ELOOP : ENAMETOOLONG;
  if (is_open_thing || (size_t)length + left + 2 > room) return false;
  memmove(path + length + 1, rest, left + 1);
  memcpy(path, target, (size_t)length);
  path[length] = '/';
  return true;
}

/* Takes the first name off the path. */
static const char *next_name(char **path) {
  char *name = *path + strspn(*path, "/");
  char *end = name + strcspn(name, "/");
  *path = *end ? end + 1 : end;
  *end = 0;
  return name;
}

/* Opens the directory of a path without the links of /proc to what a process has open: while a command starts, they lead to descriptors of the
 * guest, and ".." from there to the guest's mounts. Name by name, because commands have no openat2; without an allocation, because it shares
 * its memory with its supervisor. Returns -1 with errno. */
static int open_place(const char *place) {
  char path[8192], *rest = path;
  if (strlen(place) >= sizeof path) return (errno = ENAMETOOLONG, -1);
  strcpy(path, place);
  int at = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  for (int links = 0; at >= 0 && rest[strspn(rest, "/")];) {
    const char *name = next_name(&rest);
    struct stat stat;
    int next = openat(at, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    bool is_link = next >= 0 && fstat(next, &stat) == 0 && S_ISLNK(stat.st_mode);
    if (is_link) {
      bool is_put = ++links <= MAX_LINKS ? put_target(next, path, rest, sizeof path) : (errno = ELOOP, false);
      close(next);
      rest = path;
      next = is_put ? openat(at, *path == '/' ? "/" : ".", O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
    }
    close(at);
    at = next;
  }
  return at;
}

int enter_place(const char *place) {
  int directory = open_place(place);
  int error = directory >= 0 && fchdir(directory) == 0 ? 0 : errno;
  if (directory >= 0) close(directory);
  return error;
}
