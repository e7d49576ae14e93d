/* File work whose bytes are in a transfer file beside the root: the backend uploads or downloads it faster than the channel could
 * carry the bytes. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../guest.h"
#include "tar.h"

#define ENTRY_HEAD 16u /* u32 permission bits, u32 length of the path, u64 length of the content */

static uint64_t load(const uint8_t *at, int bytes) {
  uint64_t value = 0;
  while (bytes-- > 0) value = value << 8 | at[bytes];
  return value;
}

/* Reads up to `length` bytes; fewer only at the end. -1: it cannot be read. */
static ssize_t read_some(int fd, void *to, size_t length) {
  size_t at = 0;
  while (at < length) {
    ssize_t got = read(fd, (uint8_t *)to + at, length - at);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    at += (size_t)got;
  }
  return (ssize_t)at;
}

static int place_content(int from, uint64_t length, struct pending_file *file) {
  static uint8_t bytes[DATA_BYTES];
  while (length > 0) {
    size_t part = length < sizeof bytes ? (size_t)length : sizeof bytes;
    if (read_some(from, bytes, part) != (ssize_t)part) return -EPIPE;
    int error = pending_append(file, bytes, part);
    if (error) return error;
    length -= part;
  }
  return 0;
}

static int place_one(int from, const uint8_t head[ENTRY_HEAD]) {
  char path[4096];
  uint64_t name = load(head + 4, 4);
  if (name >= sizeof path || read_some(from, path, (size_t)name) != (ssize_t)name) return -EPIPE;
  path[name] = 0;
  struct pending_file file;
  int error = pending_create(path, (uint32_t)load(head, 4), &file);
  if (error) return error;
  error = place_content(from, load(head + 8, 8), &file);
  if (!error) return pending_commit(&file);
  pending_discard(&file);
  return error;
}

/* Prints the index of the file that could not be placed, and the errno. */
static int place(int from) {
  uint8_t head[ENTRY_HEAD];
  ssize_t got;
  for (int index = 0; (got = read_some(from, head, sizeof head)) > 0; index++) {
    int error = got == (ssize_t)sizeof head ? place_one(from, head) : -EPIPE;
    if (!error) continue;
    printf("%d %d\n", index, -error);
    return 1;
  }
  return got == 0 ? 0 : 125;
}

/* The whole transfer file becomes the content of one file. */
static int put(const char *path, int from, const char *mode) {
  static uint8_t bytes[DATA_BYTES];
  struct pending_file file;
  int error = pending_create(path, (uint32_t)strtoul(mode, NULL, 8), &file);
  bool created = !error;
  for (ssize_t got = 1; !error && got != 0;) {
    got = read_some(from, bytes, sizeof bytes);
    error = got < 0 ? -EIO : pending_append(&file, bytes, (size_t)got);
  }
  if (!error) error = pending_commit(&file);
  else if (created) pending_discard(&file);
  if (error) printf("0 %d\n", -error);
  return error ? 1 : 0;
}

static int fetch(const char *path, int to, uint64_t start, uint64_t left) {
  uint64_t size;
  int fd = files_open_read(path, &size);
  if (fd < 0) {
    printf("0 %d\n", -fd);
    return 1;
  }
  static uint8_t bytes[DATA_BYTES];
  if (start > INT64_MAX || lseek(fd, (off_t)start, SEEK_SET) < 0) left = 0;
  for (ssize_t got; left > 0 && (got = read_some(fd, bytes, left < sizeof bytes ? (size_t)left : sizeof bytes)) != 0; left -= (uint64_t)got)
    if (got < 0 || write(to, bytes, (size_t)got) != got) return errno == ENOSPC ? ENOSPC : EIO;
  return 0;
}

static int pack(const char *path, int to) {
  int directory = files_open_directory(path);
  if (directory < 0) {
    printf("0 %d\n", -directory);
    return 1;
  }
  return dup2(to, 1) < 0 ? errno : tar_out(directory);
}

static int unpack(const char *path, int from, const char *megabytes) {
  int error = files_make_directory(path);
  int directory = error ? error : files_open_directory(path);
  if (directory < 0) {
    printf("0 %d\n", -directory);
    return 254;
  }
  return dup2(from, 0) < 0 ? errno : tar_in(directory, strtoull(megabytes, NULL, 10) << 20);
}

/* place|put|fetch|pack|unpack TRANSFER-FILE ROOT [PATH [MODE | START LENGTH | MEGABYTES]]. A transfer file that is read is removed, however it ends. */
int transfer_file_main(const char *verb, int argc, char **argv) {
  bool reads = strcmp(verb, "place") == 0 || strcmp(verb, "put") == 0 || strcmp(verb, "unpack") == 0;
  if (argc < 2) return 125;
  const char *path = argc > 2 ? argv[2] : "";
  int flags = reads ? O_RDONLY : O_WRONLY | O_CREAT | O_EXCL;
  int fd = open(argv[0], flags | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0 || files_open_root(argv[1]) != 0) return 125;
  if (reads) unlink(argv[0]);
  int code = strcmp(verb, "place") == 0    ? place(fd)
             : strcmp(verb, "put") == 0    ? put(path, fd, argc > 3 ? argv[3] : "644")
             : strcmp(verb, "unpack") == 0 ? unpack(path, fd, argc > 3 ? argv[3] : "0")
             : strcmp(verb, "pack") == 0   ? pack(path, fd)
                                           : fetch(path, fd, argc > 3 ? strtoull(argv[3], NULL, 10) : 0, argc > 4 ? strtoull(argv[4], NULL, 10) : UINT64_MAX);
  if (!reads && code != 0) unlink(argv[0]);
  fflush(stdout);
  return code;
}
