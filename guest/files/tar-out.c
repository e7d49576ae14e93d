/* Packs the tree below a directory into an archive on stdout. */
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

static uint8_t buffer[DATA_BYTES];
static size_t used;

static int flush(void) {
  for (size_t at = 0; at < used;) {
    ssize_t wrote = write(1, buffer + at, used - at);
    if (wrote < 0 && errno != EINTR) return errno;
    if (wrote > 0) at += (size_t)wrote;
  }
  used = 0;
  return 0;
}

static int put(const void *bytes, size_t length) {
  const uint8_t *from = bytes;
  while (length > 0) {
    size_t part = sizeof buffer - used < length ? sizeof buffer - used : length;
    memcpy(buffer + used, from, part);
    used += part;
    from += part;
    length -= part;
    if (used == sizeof buffer) {
      int error = flush();
      if (error) return error;
    }
  }
  return 0;
}

static int pad(uint64_t length) {
  static const uint8_t zeros[BLOCK];
  return put(zeros, (size_t)((BLOCK - length % BLOCK) % BLOCK));
}

static int put_header(const char *name, const char *link, char type, const struct stat *stat, uint64_t size) {
  struct tar_header header = {.type = type, .magic = "ustar", .version = {'0', '0'}};
  memcpy(header.name, name, strnlen(name, sizeof header.name));
  if (link) memcpy(header.link, link, strnlen(link, sizeof header.link));
  snprintf(header.mode, sizeof header.mode, "%07o", (unsigned)(stat->st_mode & 0777));
  memcpy(header.uid, "0000000", 8);
  memcpy(header.gid, "0000000", 8);
  snprintf(header.size, sizeof header.size, "%011llo", (unsigned long long)(size < 1ull << 33 ? size : 0));
  long long changed = stat->st_mtim.tv_sec;
  snprintf(header.mtime, sizeof header.mtime, "%011llo", (unsigned long long)(changed < 0 || changed >= 1ll << 33 ? 0 : changed));
  memset(header.checksum, ' ', sizeof header.checksum);
  unsigned sum = 0;
  for (size_t i = 0; i < sizeof header; i++) sum += ((const uint8_t *)&header)[i];
  snprintf(header.checksum, sizeof header.checksum, "%06o", sum);
  return put(&header, sizeof header);
}

/* A pax record includes its own length, so the number of digits is found by trying. */
static size_t add_record(char *to, const char *key, const char *value) {
  size_t rest = strlen(key) + strlen(value) + 3, length = rest + 1;
  for (;;) {
    char digits[24];
    size_t with = rest + (size_t)snprintf(digits, sizeof digits, "%zu", length);
    if (with == length) break;
    length = with;
  }
  return (size_t)sprintf(to, "%zu %s=%s\n", length, key, value);
}

static bool is_plain(const char *text) {
  size_t length = 0;
  for (; text[length]; length++)
    if ((uint8_t)text[length] >= 0x80) return false;
  return length <= 100;
}

static int put_entry(const char *name, const char *link, char type, const struct stat *stat, uint64_t size) {
  char records[3 * 4096 + 256];
  size_t length = 0;
  if (!is_plain(name)) length += add_record(records + length, "path", name);
  if (link && !is_plain(link)) length += add_record(records + length, "linkpath", link);
  if (size >= 1ull << 33) {
    char digits[24];
    snprintf(digits, sizeof digits, "%llu", (unsigned long long)size);
    length += add_record(records + length, "size", digits);
  }
  int error = 0;
  if (length > 0) {
    error = put_header("pax", NULL, 'x', stat, length);
    if (!error) error = put(records, length);
    if (!error) error = pad(length);
  }
  return error ? error : put_header(name, link, type, stat, size);
}

/* Exactly `size` bytes, whatever happens to the file meanwhile. */
static int put_file(int fd, uint64_t size) {
  static uint8_t bytes[DATA_BYTES];
  for (uint64_t left = size; left > 0;) {
    size_t want = left < sizeof bytes ? (size_t)left : sizeof bytes;
    ssize_t got = read(fd, bytes, want);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno;
    if (got == 0) {
      memset(bytes, 0, want);
      got = (ssize_t)want;
    }
    int error = put(bytes, (size_t)got);
    if (error) return error;
    left -= (uint64_t)got;
  }
  return pad(size);
}

static int put_directory(int fd, const char *path);

/* These have large stack frames. Inlined into put_name, they would cost that at every level of a deep tree. */
__attribute__((noinline)) static int put_link(int parent, const char *name, const char *path, const struct stat *stat) {
  char link[4096];
  ssize_t length = readlinkat(parent, name, link, sizeof link - 1);
  if (length < 0) return errno == ENOENT || errno == EINVAL ? 0 : errno;
  link[length] = 0;
  return put_entry(path, link, '2', stat, 0);
}

__attribute__((noinline)) static int put_directory_entry(const char *path, const struct stat *stat) {
  char with_slash[4096];
  snprintf(with_slash, sizeof with_slash, "%s/", path);
  return put_entry(with_slash, NULL, '5', stat, 0);
}

static int put_name(int parent, const char *name, const char *path) {
  struct stat stat;
  if (fstatat(parent, name, &stat, AT_SYMLINK_NOFOLLOW) != 0) return errno == ENOENT ? 0 : errno;
  if (S_ISLNK(stat.st_mode)) return put_link(parent, name, path, &stat);
  if (!S_ISREG(stat.st_mode) && !S_ISDIR(stat.st_mode)) return 0;
  int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return errno == ENOENT || errno == ELOOP ? 0 : errno;
  int error = fstat(fd, &stat) == 0 ? 0 : errno;
  if (!error && S_ISDIR(stat.st_mode)) {
    error = put_directory_entry(path, &stat);
    if (!error) return put_directory(fd, path);
  } else if (!error && S_ISREG(stat.st_mode)) {
    error = put_entry(path, NULL, '0', &stat, (uint64_t)stat.st_size);
    if (!error) error = put_file(fd, (uint64_t)stat.st_size);
  }
  close(fd);
  return error;
}

static int put_child(int fd, const char *path, const char *name, char child[4096]) {
  int length = snprintf(child, 4096, "%s%s%s", path, *path ? "/" : "", name);
  int error = length >= 4090 ? ENAMETOOLONG : put_name(fd, name, child);
  if (error && error != EPIPE) dprintf(2, "%.200s: %s\n", length >= 4090 ? path : child, strerror(error));
  return error;
}

/* Closes `fd`. */
static int put_directory(int fd, const char *path) {
  DIR *directory = fdopendir(fd);
  char *child = directory ? malloc(4096) : NULL;
  int error = child ? 0 : ENOMEM;
  if (!directory) close(fd);
  while (!error) {
    errno = 0;
    struct dirent *entry = readdir(directory);
    if (!entry) {
      error = errno;
      break;
    }
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) error = put_child(fd, path, entry->d_name, child);
  }
  free(child);
  if (directory) closedir(directory);
  return error;
}

int tar_out(int directory) {
  int fd = openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  int error = put_directory(fd, "");
  static const uint8_t end[2 * BLOCK];
  if (!error) error = put(end, sizeof end);
  return error ? error : flush();
}
