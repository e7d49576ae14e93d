/* For use without a channel: runs one command, kills its whole process tree at the deadline, and exits with its code. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../guest.h"

extern char **environ;

static void write_status_file(const char *path, struct ending ending, bool timed_out) {
  if (!path) return;
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return;
  dprintf(fd, "{\"%s\":%d,\"timedOut\":%s}\n", ending.signaled ? "signal" : "exitCode", ending.code, timed_out ? "true" : "false");
  close(fd);
}

/* True when the time was over first. A time of 0 is no limit. */
static bool wait_until_readable(int fd, int64_t time) {
  struct pollfd ready = {.fd = fd, .events = POLLIN};
  for (int64_t end = now_ms() + time, left = time;; left = end - now_ms()) {
    if (time > 0 && left <= 0) return true;
    int found = poll(&ready, 1, time <= 0 ? -1 : left > INT_MAX ? INT_MAX : (int)left);
    if (found > 0) return false;
    if (found < 0 && errno != EINTR) return false;
  }
}

/* run [--timeout-ms N] [--grace-ms N] [--cwd DIR] [--status FILE] -- PROGRAM ARGUMENTS... */
int run_once_main(int argc, char **argv) {
  long timeout = 0, grace = 0;
  const char *cwd = ".", *status_file = NULL;
  int i = 0;
  for (; i + 1 < argc && strcmp(argv[i], "--") != 0; i += 2) {
    if (strcmp(argv[i], "--timeout-ms") == 0) timeout = strtol(argv[i + 1], NULL, 10);
    else if (strcmp(argv[i], "--grace-ms") == 0) grace = strtol(argv[i + 1], NULL, 10);
    else if (strcmp(argv[i], "--cwd") == 0) cwd = argv[i + 1];
    else if (strcmp(argv[i], "--status") == 0) status_file = argv[i + 1];
    else return 125;
  }
  if (i + 1 >= argc) return 125;
  signal(SIGPIPE, SIG_IGN);
  prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  struct command command = {.argv = argv + i + 1, .env = environ, .in = 0, .out = 1, .err = 2};
  command.cwd = open(cwd, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (command.cwd < 0) {
    dprintf(2, "glovebox: %s: %s\n", cwd, strerror(errno));
    return 125;
  }
  struct supervisor supervisor;
  if (start_command(&command, CONFINE_SUBREAPER, &supervisor) != 0) return 125;
  struct ending ending = {.signaled = 1, .code = SIGKILL};
  bool timed_out = wait_until_readable(supervisor.status, timeout);
  if (timed_out && grace > 0) {
    uint8_t number = SIGTERM;
    if (write(supervisor.control, &number, 1) == 1) wait_until_readable(supervisor.status, grace);
  }
  if (read(supervisor.status, &ending, sizeof ending) != sizeof ending) ending = (struct ending){.signaled = 1, .code = SIGKILL};
  /* The supervisor goes with them: the command may have stopped it. */
  kill_descendants();
  write_status_file(status_file, ending, timed_out);
  return ending.signaled ? 128 + ending.code : ending.code;
}
