/* gather-changes FILES BYTES GIT-DIRECTORY compare-index|compare-overlay ...: prints the changed paths with their present content,
 * and the commit that is checked out in the sandbox's git directory ("-": there is none). Each record is a letter, a text, a mode
 * and a second text; the mode and the lengths of the texts have 32 bits:
 *   h  the line of HEAD; the commit
 *   p  a changed path; the records of what is there follow, and none means that it was removed
 *   f  the path of a file; its content
 *   l  the path of a link; its target
 * The tree is hostile: every name is looked up in its directory, no link is followed, only directories and regular files are
 * opened. Exits with EXIT_NEEDS_GIT on anything that only git can decide: more files or bytes than allowed, anything but files,
 * links and directories, an empty directory, a repository, a file that its owner cannot read. */
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "../guest.h"
#include "changed-paths.h"

#define MAX_DEPTH 200
#define OPEN_FILE (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
#define OPEN_DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static char path[1 << 16];
static long files_left;
static uint64_t bytes_left;
static bool is_overlay;

static void put_number(uint32_t number) {
  uint8_t bytes[4] = {number & 0xff, number >> 8 & 0xff, number >> 16 & 0xff, number >> 24};
  fwrite(bytes, 1, sizeof bytes, stdout);
}

static void put(char letter, const char *name, size_t length, uint32_t mode, const char *content, size_t size) {
  putchar(letter);
  put_number((uint32_t)length);
  fwrite(name, 1, length, stdout);
  put_number(mode);
  put_number((uint32_t)size);
  fwrite(content, 1, size, stdout);
}

/* Refuses extended attributes of an overlay. The exceptions mean nothing for the content, or are handled by compare-overlay.c. */
static void refuse_overlay_xattrs(int fd) {
  static const char *known[] = {"opaque", "origin", "impure", "nlink", "uuid", NULL};
  static char names[1 << 16];
  if (!is_overlay) return;
  ssize_t length = flistxattr(fd, names, sizeof names);
  if (length < 0 && errno != ENOTSUP) exit_needs_git();
  for (char *name = names; name < names + length; name += strlen(name) + 1) {
    const char *own = strstr(name, "overlay.");
    if (!own) continue;
    const char **each = known;
    while (*each && strcmp(own + strlen("overlay."), *each) != 0) each++;
    if (!*each) exit_needs_git();
  }
}

static void gather_file(int directory, const char *name, size_t length) {
  static char content[1 << 16];
  struct stat found;
  int fd = openat(directory, name, OPEN_FILE);
  if (fd < 0 || fstat(fd, &found) < 0 || !S_ISREG(found.st_mode) || !(found.st_mode & 0400)) exit_needs_git();
  if (files_left-- <= 0 || (uint64_t)found.st_size > bytes_left) exit_needs_git();
  refuse_overlay_xattrs(fd);
  bytes_left -= (uint64_t)found.st_size;
  putchar('f');
  put_number((uint32_t)length);
  fwrite(path, 1, length, stdout);
  put_number(found.st_mode & 0100 ? 0100755 : 0100644);
  put_number((uint32_t)found.st_size);
  for (uint64_t left = (uint64_t)found.st_size; left > 0;) {
    ssize_t got = read(fd, content, left < sizeof content ? (size_t)left : sizeof content);
    if (got <= 0) exit_needs_git();
    fwrite(content, 1, (size_t)got, stdout);
    left -= (uint64_t)got;
  }
  close(fd);
}

static void gather_link(int directory, const char *name, size_t length) {
  char target[4096];
  ssize_t size = readlinkat(directory, name, target, sizeof target);
  if (size <= 0 || (size_t)size == sizeof target || files_left-- <= 0) exit_needs_git();
  put('l', path, length, 0120000, target, (size_t)size);
}

static bool gather_path(int directory, const char *name, size_t length, int depth);

/* The directory's own name is at the end of `path`. */
static void gather_directory(int parent, const char *name, size_t length, int depth) {
  _Alignas(8) char buffer[1 << 15];
  struct stat found;
  int directory = depth < MAX_DEPTH ? openat(parent, name, OPEN_DIRECTORY) : -1;
  if (directory < 0 || fstat(directory, &found) < 0 || (found.st_mode & 0500) != 0500) exit_needs_git();
  refuse_overlay_xattrs(directory);
  bool is_empty = true;
  path[length] = '/';
  for (long size; (size = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) != 0;) {
    if (size < 0) exit_needs_git();
    for (long at = 0; at < size;) {
      const struct directory_record *record = (const struct directory_record *)(buffer + at);
      at += record->size;
      if (strcmp(record->name, ".") == 0 || strcmp(record->name, "..") == 0) continue;
      if (strcmp(record->name, ".git") == 0) exit_needs_git();
      size_t end = length + 1 + strlen(record->name);
      if (end + 1 >= sizeof path) exit_needs_git();
      memcpy(path + length + 1, record->name, end - length);
      if (gather_path(directory, record->name, end, depth + 1)) is_empty = false;
    }
  }
  if (is_empty) exit_needs_git();
  close(directory);
}

/* False when there is nothing. */
static bool gather_path(int directory, const char *name, size_t length, int depth) {
  struct stat found;
  if (fstatat(directory, name, &found, AT_SYMLINK_NOFOLLOW) < 0) {
    if (errno != ENOENT) exit_needs_git();
    return false;
  }
  bool is_gone = is_overlay && S_ISCHR(found.st_mode) && found.st_rdev == 0;
  if (is_gone) return false;
  if (S_ISREG(found.st_mode)) gather_file(directory, name, length);
  else if (S_ISLNK(found.st_mode)) gather_link(directory, name, length);
  else if (S_ISDIR(found.st_mode)) gather_directory(directory, name, length, depth);
  else exit_needs_git();
  return true;
}

/* Opens the parent directory of a path; -1 when it does not exist any more. */
static int open_parent(int root, const char *whole, const char **name) {
  int directory = fcntl(root, F_DUPFD_CLOEXEC, 3);
  *name = whole;
  for (const char *slash; directory >= 0 && (slash = strchr(*name, '/')); *name = slash + 1) {
    char part[256];
    size_t length = (size_t)(slash - *name);
    if (length >= sizeof part) exit_needs_git();
    memcpy(part, *name, length);
    part[length] = 0;
    int next = openat(directory, part, OPEN_DIRECTORY);
    if (next < 0 && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) exit_needs_git();
    close(directory);
    directory = next;
  }
  return directory;
}

int gather_changes_main(int argc, char **argv) {
  char head[1024], commit[1024];
  if (argc < 4) return 125;
  files_left = atol(argv[0]);
  bytes_left = strtoull(argv[1], NULL, 10);
  is_overlay = strcmp(argv[3], "compare-overlay") == 0;
  if (strcmp(argv[2], "-") != 0) {
    if (!read_git_head(argv[2], head, commit)) exit_needs_git();
    put('h', head, strlen(head), 0, commit, strlen(commit));
  }
  int root = is_overlay ? compare_overlay(argc - 4, argv + 4) : compare_index(argc - 4, argv + 4, true);
  if (root < 0) return 125;
  for (const char *each = changed_paths; each < changed_paths + changed_paths_length; each += strlen(each) + 1) {
    size_t length = strlen(each);
    /* The top directory's own .git was put there by us. */
    if (strcmp(each, ".git") == 0) continue;
    put('p', each, length, 0, "", 0);
    const char *name;
    int parent = open_parent(root, each, &name);
    if (parent < 0) continue;
    memcpy(path, each, length + 1);
    gather_path(parent, name, length, 0);
    close(parent);
  }
  return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 125;
}
