/* Ending all that was ever started beneath this process. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "agent.h"

#define MOST_PATIENCE 30000 /* ms; what cannot die by then waits for a device */

int kill_children(bool (*spared)(pid_t pid)) {
  char path[64], list[16384];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)syscall(SYS_gettid));
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? -1 : read(fd, list, sizeof list - 1);
  if (fd >= 0) close(fd);
  if (length <= 0) return 0;
  list[length] = 0;
  int found = 0;
  for (char *at = list, *next; *at; at = next) {
    pid_t pid = (pid_t)strtol(at, &next, 10);
    /* A number without its blank was cut off at the end of the buffer and may be the start of another one. */
    if (next == at || *next != ' ') return found;
    next++;
    if (pid <= 1 || (spared && spared(pid))) continue;
    kill(pid, SIGKILL);
    found++;
  }
  return found;
}

void kill_descendants(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, NULL);
  /* By time, not by rounds: each round ends one generation, and a chain of processes can have thousands. */
  for (int64_t end = now_ms() + MOST_PATIENCE; now_ms() < end;) {
    kill_children(NULL);
    pid_t reaped;
    while ((reaped = waitpid(-1, NULL, WNOHANG)) > 0) continue;
    if (reaped < 0 && errno == ECHILD) return;
    struct timespec pause = {.tv_nsec = 5000000};
    sigtimedwait(&set, NULL, &pause);
  }
}
