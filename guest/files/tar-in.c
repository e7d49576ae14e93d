/* Unpacks an archive from stdin below a directory. The kernel looks names up beneath it. Only directories, regular files and
 * links are made, without set-id bits. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../guest.h"
#include "tar.h"

#define MAX_ENTRIES 1000000
#define MAX_RECORDS (64u << 10)

struct entry {
  char path[4096], link[4096];
  uint64_t size;
  bool has_size;
};

static uint64_t bytes_left;

static int read_fully(void *to, size_t length) {
  for (size_t at = 0; at < length;) {
    ssize_t got = read(0, (uint8_t *)to + at, length - at);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return TAR_BROKEN;
    at += (size_t)got;
  }
  return 0;
}

static int skip(uint64_t length) {
  uint8_t bytes[4096];
  while (length > 0) {
    size_t part = length < sizeof bytes ? (size_t)length : sizeof bytes;
    if (read_fully(bytes, part)) return TAR_BROKEN;
    length -= part;
  }
  return 0;
}

static uint64_t padding(uint64_t length) { return (BLOCK - length % BLOCK) % BLOCK; }

static bool parse_octal(const char *field, size_t width, uint64_t *out) {
  uint64_t value = 0;
  size_t i = 0;
  while (i < width && field[i] == ' ') i++;
  for (; i < width && field[i] >= '0' && field[i] <= '7'; i++) value = value << 3 | (uint64_t)(field[i] - '0');
  *out = value;
  return i == width || field[i] == 0 || field[i] == ' ';
}

static bool has_valid_checksum(const struct tar_header *header) {
  uint64_t wanted;
  if (!parse_octal(header->checksum, sizeof header->checksum, &wanted)) return false;
  unsigned sum = 0;
  for (size_t i = 0; i < sizeof *header; i++)
    sum += i >= offsetof(struct tar_header, checksum) && i < offsetof(struct tar_header, type) ? ' ' : ((const uint8_t *)header)[i];
  return sum == wanted;
}

static bool store_value(char to[4096], const char *value, size_t length) {
  if (length >= 4096 || memchr(value, 0, length)) return false;
  memcpy(to, value, length);
  to[length] = 0;
  return true;
}

static int read_records(uint64_t size, struct entry *entry) {
  if (size > MAX_RECORDS) return TAR_TOO_LARGE;
  char *records = malloc((size_t)size + 1);
  if (!records || read_fully(records, (size_t)size) || skip(padding(size))) {
    free(records);
    return TAR_BROKEN;
  }
  records[size] = 0;
  int error = 0;
  for (char *at = records, *end = records + size; at < end && !error;) {
    char *blank;
    unsigned long length = strtoul(at, &blank, 10);
    /* The length may be smaller than its own digits. */
    bool fits = length > 0 && length <= (size_t)(end - at) && length > (size_t)(blank - at) && *blank == ' ';
    char *equals = fits ? memchr(blank, '=', length - (size_t)(blank - at)) : NULL;
    if (!equals || at[length - 1] != '\n') {
      error = TAR_BROKEN;
      break;
    }
    char *value = equals + 1;
    size_t value_length = (size_t)(at + length - 1 - value);
    size_t key_length = (size_t)(equals - blank - 1);
    if (key_length == 4 && memcmp(blank + 1, "path", 4) == 0) error = store_value(entry->path, value, value_length) ? 0 : TAR_BROKEN;
    else if (key_length == 8 && memcmp(blank + 1, "linkpath", 8) == 0) error = store_value(entry->link, value, value_length) ? 0 : TAR_BROKEN;
    else if (key_length == 4 && memcmp(blank + 1, "size", 4) == 0) {
      entry->size = strtoull(value, NULL, 10);
      entry->has_size = true;
    }
    at += length;
  }
  free(records);
  return error;
}

/* Refuses absolute names and `..`; removes trailing slashes and `./`. */
static int clean_path(char path[4096]) {
  if (path[0] == '/') return TAR_ESCAPES;
  char out[4096];
  size_t length = 0;
  for (char *save, *part = strtok_r(path, "/", &save); part; part = strtok_r(NULL, "/", &save)) {
    if (strcmp(part, ".") == 0) continue;
    if (strcmp(part, "..") == 0) return TAR_ESCAPES;
    length += (size_t)snprintf(out + length, sizeof out - length, "%s%s", length ? "/" : "", part);
  }
  out[length] = 0;
  strcpy(path, out);
  return 0;
}

static int to_exit(int error) { return error == -ESCAPES ? TAR_ESCAPES : error == -NOT_REGULAR ? TAR_NOT_REGULAR : -error; }

static int extract_file(const struct entry *entry, uint32_t mode) {
  struct pending_file file;
  int error = pending_create(entry->path, mode, &file);
  if (error) return to_exit(error);
  static uint8_t bytes[DATA_BYTES];
  for (uint64_t left = entry->size; left > 0;) {
    size_t part = left < sizeof bytes ? (size_t)left : sizeof bytes;
    error = read_fully(bytes, part) ? -TAR_BROKEN : pending_append(&file, bytes, part);
    if (error) {
      pending_discard(&file);
      return to_exit(error);
    }
    left -= part;
  }
  error = pending_commit(&file);
  return error ? to_exit(error) : skip(padding(entry->size));
}

static int extract_link(const struct entry *entry) {
  char name[256];
  int parent = files_open_parent(entry->path, true, name);
  if (parent < 0) return to_exit(parent);
  int error = 0;
  if (symlinkat(entry->link, parent, name) != 0) {
    error = errno;
    struct stat stat;
    if (error == EEXIST && fstatat(parent, name, &stat, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(stat.st_mode) && unlinkat(parent, name, 0) == 0)
      error = symlinkat(entry->link, parent, name) == 0 ? 0 : errno;
  }
  close(parent);
  return error;
}

static int extract_entry(const struct tar_header *header, struct entry *entry) {
  uint64_t size, mode;
  if (!parse_octal(header->size, sizeof header->size, &size) || !parse_octal(header->mode, sizeof header->mode, &mode)) return TAR_BROKEN;
  if (header->type == 'x') return read_records(size, entry);
  if (header->type == 'g') return skip(size + padding(size));
  if (!entry->has_size) entry->size = size;
  if (!entry->path[0]) {
    size_t prefix = memcmp(header->magic, "ustar", 5) == 0 ? strnlen(header->prefix, sizeof header->prefix) : 0;
    snprintf(entry->path, sizeof entry->path, "%.*s%s%.*s", (int)prefix, header->prefix, prefix ? "/" : "", 100, header->name);
  }
  if (!entry->link[0]) snprintf(entry->link, sizeof entry->link, "%.100s", header->link);
  char shown[201] = "";
  memcpy(shown, entry->path, strnlen(entry->path, sizeof shown - 1));
  int error = clean_path(entry->path);
  if (!error && entry->size > bytes_left) error = TAR_TOO_LARGE;
  if (!error) {
    bool is_file = header->type == '0' || header->type == 0;
    if (is_file) bytes_left -= entry->size;
    if (is_file) error = extract_file(entry, (uint32_t)mode);
    else if (header->type == '5') error = entry->path[0] ? to_exit(files_make_directory(entry->path)) : 0;
    else if (header->type == '2') error = extract_link(entry);
    else error = TAR_NOT_REGULAR;
  }
  if (error) dprintf(2, "%s", shown);
  memset(entry, 0, sizeof *entry);
  return error;
}

int tar_in(int root, uint64_t max_bytes) {
  files_use_root(root);
  bytes_left = max_bytes;
  static struct entry entry;
  memset(&entry, 0, sizeof entry);
  for (int count = 0; count < MAX_ENTRIES; count++) {
    struct tar_header header;
    if (read_fully(&header, sizeof header)) return TAR_BROKEN;
    static const struct tar_header end;
    if (memcmp(&header, &end, sizeof end) == 0) return 0;
    if (!has_valid_checksum(&header)) return TAR_BROKEN;
    int error = extract_entry(&header, &entry);
    if (error) return error;
  }
  return TAR_TOO_LARGE;
}
