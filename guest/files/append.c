/* Appends to files. All of the bytes or none: what was written of them is cut off again when there is no space for the rest. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../guest.h"

#define OPEN_APPEND (O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)

static int open_append(int parent, const char *name, uint32_t mode) {
  int fd = openat(parent, name, OPEN_APPEND);
  if (fd < 0 && errno == ENOENT) {
    fd = openat(parent, name, OPEN_APPEND | O_CREAT | O_EXCL, 0600);
    if (fd >= 0) fchmod(fd, mode & 0777);
    else if (errno == EEXIST) fd = openat(parent, name, OPEN_APPEND);
  }
  if (fd < 0) return errno == ENXIO || errno == EISDIR || errno == ELOOP ? -NOT_REGULAR : -errno;
  struct stat stat;
  if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode)) return fd;
  close(fd);
  return -NOT_REGULAR;
}

static int write_all(int fd, const uint8_t *bytes, size_t length) {
  while (length > 0) {
    ssize_t wrote = write(fd, bytes, length);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return wrote < 0 ? -errno : -EIO;
    bytes += wrote;
    length -= (size_t)wrote;
  }
  return 0;
}

/* Only if nobody else has appended meanwhile. */
static void cut_off(int fd, off_t before) {
  struct stat stat;
  off_t end = lseek(fd, 0, SEEK_CUR);
  if (fstat(fd, &stat) == 0 && stat.st_size == end && ftruncate(fd, before) != 0) errno = 0;
}

int files_append(const char *path, uint32_t mode, const uint8_t *bytes, size_t length) {
  char name[256];
  int parent = files_open_target(path, name);
  if (parent < 0) return parent;
  int fd = open_append(parent, name, mode);
  close(parent);
  if (fd < 0) return fd;
  off_t before = lseek(fd, 0, SEEK_END);
  int error = write_all(fd, bytes, length);
  if (error) cut_off(fd, before);
  close(fd);
  return error;
}

int append_pending(const struct pending_file *file) {
  static uint8_t bytes[DATA_BYTES];
  int from = openat(file->parent, file->temporary, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  int fd = from < 0 ? -errno : open_append(file->parent, file->name, file->mode);
  int error = fd < 0 ? fd : 0;
  off_t before = error ? 0 : lseek(fd, 0, SEEK_END);
  for (ssize_t got = 1; !error && got != 0;) {
    got = read(from, bytes, sizeof bytes);
    if (got < 0 && errno != EINTR) error = -errno;
    if (got > 0) error = write_all(fd, bytes, (size_t)got);
  }
  if (error && fd >= 0) cut_off(fd, before);
  if (from >= 0) close(from);
  if (fd >= 0) close(fd);
  return error;
}
