/* compare-overlay LOWER UPPER MAX: prints the paths that an overlay's upper layer changes, each ended by a zero byte. A directory
 * that is new, or hides the lower one, stands for everything in it. The tree is hostile: no name is looked up twice, no link is
 * followed. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
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

static char path[1 << 16];

/* Whether it hides the lower directory, or is redirected to another one. */
static bool is_opaque(int directory) {
  static char names[1 << 16];
  ssize_t length = flistxattr(directory, names, sizeof names);
  if (length < 0) return errno != ENOTSUP;
  for (char *name = names; name < names + length; name += strlen(name) + 1) {
    const char *own = strstr(name, "overlay.");
    if (own && (strcmp(own, "overlay.opaque") == 0 || strcmp(own, "overlay.redirect") == 0)) return true;
  }
  return false;
}

/* An empty lower directory is a submodule. Git adds it as a whole, and refuses names below it. */
static bool is_empty(int directory) {
  char buffer[1024];
  bool is = true;
  for (long size; is && (size = syscall(SYS_getdents64, directory, buffer, sizeof buffer)) != 0;) {
    if (size < 0) exit_needs_git();
    for (long at = 0; at < size; at += *(unsigned short *)(buffer + at + 16)) {
      const char *name = buffer + at + 19;
      if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) is = false;
    }
  }
  return is;
}

static void walk(int lower, int upper, size_t length, int depth) {
  DIR *entries = depth < MAX_DEPTH ? fdopendir(upper) : NULL;
  if (!entries) exit_needs_git();
  for (struct dirent *entry; (entry = readdir(entries));) {
    const char *name = entry->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0) continue;
    size_t end = length + strlen(name);
    if (end + 1 >= sizeof path) exit_needs_git();
    memcpy(path + length, name, end - length);
    int above = openat(upper, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (above < 0 && errno != ENOTDIR && errno != ELOOP) exit_needs_git();
    int below = above < 0 ? -1 : openat(lower, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (below < 0 || is_opaque(above) || is_empty(below)) {
      add_changed_path(path, end);
      if (above >= 0) close(above);
    } else {
      path[end] = '/';
      walk(below, above, end + 1, depth + 1);
    }
    if (below >= 0) close(below);
  }
  closedir(entries);
}

int compare_overlay(int argc, char **argv) {
  int lower = argc == 3 ? open(argv[0], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
  int upper = argc == 3 ? open(argv[1], O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
  if (lower < 0 || upper < 0) return -1;
  changed_paths_left = atol(argv[2]);
  /* walk closes its descriptor. */
  walk(lower, fcntl(upper, F_DUPFD_CLOEXEC, 3), 0, 0);
  return upper;
}

int compare_overlay_main(int argc, char **argv) { return compare_overlay(argc, argv) >= 0 && write_all(1, changed_paths, changed_paths_length) ? 0 : 125; }
