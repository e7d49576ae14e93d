/* The list of changed paths. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "changed-paths.h"

char changed_paths[1 << 24];
size_t changed_paths_length;
long changed_paths_left;

_Noreturn void exit_needs_git(void) { exit(EXIT_NEEDS_GIT); }

void add_changed_path(const char *path, size_t length) {
  if (changed_paths_left-- <= 0 || sizeof changed_paths - changed_paths_length <= length) exit_needs_git();
  memcpy(changed_paths + changed_paths_length, path, length);
  changed_paths[changed_paths_length + length] = 0;
  changed_paths_length += length + 1;
}

bool write_all(int fd, const char *data, size_t size) {
  for (ssize_t done; size > 0; data += done, size -= (size_t)done)
    if ((done = write(fd, data, size)) <= 0) return false;
  return true;
}
