/* replicate ORIGIN TARGET MEGABYTES [EXCLUDED]: makes one tree equal to another. Only the bytes decide what differs, not times or
 * indexes: a file that is mapped into memory can change without its times, and what an index says depends on settings. The one
 * excluded name at the top stays as it is.
 *
 * The origin is hostile: no link is followed, only directories and regular files are opened. No command runs in the target yet.
 * Anything but files, directories and links is not copied, and neither are set-id bits and times. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../guest.h"
#include "tar.h"

#define OPEN_FILE (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define OPEN_DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define PERMISSIONS 0777
#define GONE (-1)

static char path[4096]; /* for error messages */
static uint64_t left;

static int replicate_directory(int from, int to, size_t length, const char *excluded);

/* Reads up to `length` bytes; fewer only at the end. -1: it cannot be read. */
static ssize_t read_some(int fd, uint8_t *to, size_t length) {
  size_t at = 0;
  while (at < length) {
    ssize_t got = read(fd, to + at, length - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    at += (size_t)got;
  }
  return (ssize_t)at;
}

static bool has_same_bytes(int one, int other, uint64_t size) {
  static uint8_t bytes[2][DATA_BYTES];
  while (size > 0) {
    size_t part = size < DATA_BYTES ? (size_t)size : DATA_BYTES;
    if (read_some(one, bytes[0], part) != (ssize_t)part || read_some(other, bytes[1], part) != (ssize_t)part) return false;
    if (memcmp(bytes[0], bytes[1], part) != 0) return false;
    size -= part;
  }
  return true;
}

/* Copies at most `size` bytes, whatever happens to the file meanwhile. */
static int copy_bytes(int from, int to, uint64_t size) {
  static uint8_t bytes[DATA_BYTES];
  if (lseek(from, 0, SEEK_SET) < 0) return errno;
  while (size > 0) {
    /* Shares the blocks where the file system can. */
    ssize_t got = copy_file_range(from, NULL, to, NULL, size < 1 << 30 ? (size_t)size : 1 << 30, 0);
    if (got < 0 && errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) return errno;
    if (got == 0) return 0;
    if (got < 0) break;
    size -= (uint64_t)got;
  }
  while (size > 0) {
    ssize_t got = read_some(from, bytes, size < sizeof bytes ? (size_t)size : sizeof bytes);
    if (got < 0) return errno;
    if (got == 0) return 0;
    for (ssize_t at = 0, wrote; at < got; at += wrote)
      if ((wrote = write(to, bytes + at, (size_t)(got - at))) < 0) return errno;
    size -= (uint64_t)got;
  }
  return 0;
}

static int remove_if_there(int to, const char *name) {
  int error = remove_tree(to, name);
  return error == ENOENT ? 0 : error;
}

static int copy_file(int source, const struct stat *now, int to, const char *name) {
  if ((uint64_t)now->st_size > left) return TAR_TOO_LARGE;
  left -= (uint64_t)now->st_size;
  int error = remove_if_there(to, name);
  int target = error ? -1 : openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (target < 0) return error ? error : errno;
  error = copy_bytes(source, target, (uint64_t)now->st_size);
  if (!error && fchmod(target, now->st_mode & PERMISSIONS) != 0) error = errno;
  close(target);
  return error;
}

static int replicate_file(int from, int to, const char *name) {
  struct stat now, there;
  int source = openat(from, name, OPEN_FILE);
  if (source < 0) return errno;
  int error = fstat(source, &now) != 0 ? errno : S_ISREG(now.st_mode) ? 0 : EAGAIN;
  int target = error ? -1 : openat(to, name, OPEN_FILE);
  bool is_same = target >= 0 && fstat(target, &there) == 0 && S_ISREG(there.st_mode) && there.st_size == now.st_size && has_same_bytes(source, target, (uint64_t)now.st_size);
  if (!error && !is_same) error = copy_file(source, &now, to, name);
  else if (!error && ((there.st_mode ^ now.st_mode) & PERMISSIONS) && fchmod(target, now.st_mode & PERMISSIONS) != 0) error = errno;
  if (target >= 0) close(target);
  close(source);
  return error;
}

static int replicate_link(int from, int to, const char *name) {
  char now[4096], there[4096];
  ssize_t length = readlinkat(from, name, now, sizeof now - 1);
  if (length < 0) return errno;
  if (readlinkat(to, name, there, sizeof there) == length && memcmp(now, there, (size_t)length) == 0) return 0;
  now[length] = 0;
  int error = remove_if_there(to, name);
  return error ? error : symlinkat(now, to, name) == 0 ? 0 : errno;
}

static int replicate_below(int from, int to, const char *name, size_t length) {
  struct stat now, there;
  int below = openat(from, name, OPEN_DIRECTORY);
  if (below < 0) return errno;
  int target = openat(to, name, OPEN_DIRECTORY);
  if (target < 0) {
    int error = remove_if_there(to, name);
    if (!error && mkdirat(to, name, 0700) != 0) error = errno;
    if (!error) target = openat(to, name, OPEN_DIRECTORY);
    if (target < 0) {
      close(below);
      return error ? error : errno;
    }
  }
  int error = fstat(below, &now) == 0 && fstat(target, &there) == 0 ? 0 : errno;
  int mode = error ? -1 : dup(target);
  if (error || mode < 0) {
    close(below);
    close(target);
    return error ? error : errno;
  }
  error = replicate_directory(below, target, length, NULL);
  /* Last: a read-only directory has to be filled first. */
  if (!error && ((there.st_mode ^ now.st_mode) & PERMISSIONS) && fchmod(mode, now.st_mode & PERMISSIONS) != 0) error = errno;
  close(mode);
  return error;
}

/* DT_REG, DT_DIR or DT_LNK. DT_UNKNOWN: it is not copied, or does not exist. */
static int kind_of(int directory, const char *name) {
  struct stat stat;
  if (fstatat(directory, name, &stat, AT_SYMLINK_NOFOLLOW) != 0) return DT_UNKNOWN;
  return S_ISREG(stat.st_mode) ? DT_REG : S_ISDIR(stat.st_mode) ? DT_DIR : S_ISLNK(stat.st_mode) ? DT_LNK : DT_UNKNOWN;
}

static bool is_skipped(const char *name, const char *excluded) {
  return strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || (excluded && strcmp(name, excluded) == 0);
}

static int replicate_as(int kind, int from, int to, const char *name, size_t end) {
  if (kind == DT_REG) return replicate_file(from, to, name);
  if (kind == DT_LNK) return replicate_link(from, to, name);
  path[end] = '/';
  return replicate_below(from, to, name, end + 1);
}

/* GONE when nothing of this name is to be copied any more: the origin may be changing meanwhile. */
static int replicate_name(int from, int to, const char *name, int kind, size_t length) {
  size_t end = length + strlen(name);
  if (end >= sizeof path - 6) return ENAMETOOLONG;
  memcpy(path + length, name, end - length);
  path[end] = 0;
  for (int attempt = 0;; attempt++) {
    if (kind == DT_UNKNOWN) return GONE;
    int error = replicate_as(kind, from, to, name, end), before = kind;
    if (!error || attempt == 8) return error;
    if ((kind = kind_of(from, name)) == before) return error;
  }
}

/* Removes what the origin does not have. */
static int remove_extra(DIR *entries, int from, const char *excluded) {
  int error = 0;
  rewinddir(entries);
  for (struct dirent *entry; !error && (entry = readdir(entries));)
    if (!is_skipped(entry->d_name, excluded) && kind_of(from, entry->d_name) == DT_UNKNOWN) error = remove_if_there(dirfd(entries), entry->d_name);
  return error;
}

/* Closes both descriptors. */
static int replicate_directory(int from, int to, size_t length, const char *excluded) {
  DIR *origin = fdopendir(from), *target = fdopendir(to);
  int error = origin && target ? 0 : ENOMEM;
  long extra = 0;
  while (!error) {
    errno = 0;
    struct dirent *entry = readdir(origin);
    if (!entry) {
      error = errno;
      break;
    }
    if (is_skipped(entry->d_name, excluded)) continue;
    int kind = entry->d_type == DT_REG || entry->d_type == DT_DIR || entry->d_type == DT_LNK ? entry->d_type : kind_of(from, entry->d_name);
    error = replicate_name(from, to, entry->d_name, kind, length);
    if (!error) extra--;
    else if (error == GONE) error = 0;
  }
  /* By now the target has everything that the origin has. */
  for (struct dirent *entry; !error && (entry = readdir(target));)
    if (!is_skipped(entry->d_name, excluded)) extra++;
  if (!error && extra > 0) error = remove_extra(target, from, excluded);
  if (!origin) close(from);
  if (!target) close(to);
  if (origin) closedir(origin);
  if (target) closedir(target);
  return error;
}

int replicate_one(int from, int to, const char *name, const char **where) {
  umask(0);
  left = UINT64_MAX;
  *where = path;
  int error = replicate_name(from, to, name, kind_of(from, name), 0);
  return error == GONE ? TAR_NOT_REGULAR : error;
}

int replicate_main(int argc, char **argv) {
  if (argc < 3 || argc > 4) return 125;
  umask(0);
  raise_descriptor_limit();
  int from = open(argv[0], OPEN_DIRECTORY), to = open(argv[1], OPEN_DIRECTORY);
  if (from < 0 || to < 0) return errno;
  left = strtoull(argv[2], NULL, 10) << 20;
  int error = replicate_directory(from, to, 0, argv[3]);
  if (error) dprintf(2, "%.200s", path);
  return error;
}
