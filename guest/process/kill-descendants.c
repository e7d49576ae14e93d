/* Kills everything that was ever started beneath this process. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../guest.h"

#define MAX_PATIENCE 30000 /* ms; a process that cannot die by then waits for a device */
#define SUDO_PATIENCE 5000
#define SUDO_TRIES 2
#define MAX_OTHERS 64
#define QUIET_ROUNDS 3

bool own_machine;
/* Children that belong to another user by now, and that we could not kill. */
static int unkillable;
static pid_t sudo_kill;

/* A child that belongs to another user got there by `sudo` or something like it, so we can do the same. If it exits first, its
 * pid may belong to another process by the time it is killed, which is acceptable only where the whole machine is the sandbox. */
static pid_t start_sudo_kill(const pid_t *pids, int count) {
  char numbers[MAX_OTHERS][16], *argv[MAX_OTHERS + 5] = {"sudo", "-n", "kill", "-KILL"};
  for (int i = 0; i < count; i++) {
    snprintf(numbers[i], sizeof numbers[i], "%d", (int)pids[i]);
    argv[4 + i] = numbers[i];
  }
  pid_t pid = fork();
  if (pid != 0) return pid;
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setsid();
  int empty = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = 0; fd < 3; fd++) dup2(empty, fd);
  close_from(3);
  execvp(argv[0], argv);
  _exit(127);
}

/* How many of these are being killed; 0 once that was tried in vain. */
static int kill_as_root(const pid_t *pids, int count) {
  static pid_t first;
  static int tries;
  static int64_t since;
  if (count == 0 || !own_machine || geteuid() == 0) return 0;
  if (sudo_kill > 0 && (kill(sudo_kill, 0) == 0 || errno == EPERM)) return now_ms() - since < SUDO_PATIENCE ? count : 0;
  if (pids[0] != first) tries = 0;
  first = pids[0];
  if (tries++ >= SUDO_TRIES) return 0;
  since = now_ms();
  sudo_kill = start_sudo_kill(pids, count);
  return count;
}

int kill_children(bool (*excluded)(pid_t pid)) {
  char path[64], list[16384];
  snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)syscall(SYS_gettid));
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? -1 : read(fd, list, sizeof list - 1);
  if (fd >= 0) close(fd);
  unkillable = 0;
  if (length <= 0) return 0;
  list[length] = 0;
  pid_t others[MAX_OTHERS];
  int found = 0, count = 0;
  for (char *at = list, *next; *at; at = next) {
    pid_t pid = (pid_t)strtol(at, &next, 10);
    /* A number without its blank was cut off at the end of the buffer, and may be the start of another one. */
    if (next == at || *next != ' ') break;
    next++;
    if (pid <= 1 || pid == sudo_kill || (excluded && excluded(pid))) continue;
    if (kill(pid, SIGKILL) == 0 || errno != EPERM) found++;
    else if (count < MAX_OTHERS) others[count++] = pid;
  }
  int ending = kill_as_root(others, count);
  unkillable = count - ending;
  return found + ending;
}

void kill_descendants(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, NULL);
  int quiet = 0;
  /* Limited by time, not by rounds: each round kills one generation, and a chain of processes can have thousands. */
  for (int64_t end = now_ms() + MAX_PATIENCE; now_ms() < end && quiet < QUIET_ROUNDS;) {
    quiet = kill_children(NULL) == 0 && unkillable > 0 ? quiet + 1 : 0;
    pid_t reaped;
    while ((reaped = waitpid(-1, NULL, WNOHANG)) > 0) continue;
    if (reaped < 0 && errno == ECHILD) return;
    struct timespec pause = {.tv_nsec = 5000000};
    sigtimedwait(&set, NULL, &pause);
  }
}
