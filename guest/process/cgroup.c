/* Limits and counters of the container's control group. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../guest.h"

int64_t cgroup_process_limit(void) {
  int fd = open("/sys/fs/cgroup/pids.max", O_RDONLY | O_CLOEXEC);
  if (fd < 0) fd = open("/sys/fs/cgroup/pids/pids.max", O_RDONLY | O_CLOEXEC);
  char text[32];
  ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (length <= 0 || text[0] < '0' || text[0] > '9') return -1;
  text[length] = 0;
  return strtoll(text, NULL, 10);
}

int64_t cgroup_oom_kills(void) {
  static int counter = -2;
  if (counter == -2) counter = open("/sys/fs/cgroup/memory.events", O_RDONLY | O_CLOEXEC);
  if (counter == -1) counter = open("/sys/fs/cgroup/memory/memory.oom_control", O_RDONLY | O_CLOEXEC);
  if (counter < 0) counter = -3;
  char text[512];
  ssize_t length = counter < 0 ? -1 : pread(counter, text, sizeof text - 1, 0);
  if (length <= 0) return -1;
  text[length] = 0;
  const char *found = strstr(text, "oom_kill ");
  return found ? strtoll(found + 9, NULL, 10) : -1;
}
