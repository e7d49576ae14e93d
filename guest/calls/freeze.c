/* Freezing: while a snapshot is taken, no process of the sandbox runs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "call.h"

#define PATIENCE 5000 /* ms until everything must be stopped; a process that waits for a disk cannot be stopped at once */
#define RETRY_AFTER 30 /* ms until all are continued for a moment: a vfork() child stopped before its exec blocks its parent for ever */

static bool freezing;
static uint32_t freeze_request;
static bool failed;

/* The state letter of a process. It follows the name, which can contain anything. */
static char state_of(pid_t pid) {
  char path[64], text[512];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (length <= 0) return 'X';
  text[length] = 0;
  const char *end = strrchr(text, ')');
  return end && end[1] ? end[2] : 'X';
}

/* The next process but us and whoever carries our channel. 0: there is none. */
static pid_t next_process(DIR *processes) {
  pid_t spared = linked ? link_peer() : 0;
  for (struct dirent *entry; (entry = readdir(processes));) {
    pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
    if (pid > 1 && pid != spared) return pid;
  }
  return 0;
}

static bool all_stopped(void) {
  DIR *processes = opendir("/proc");
  if (!processes) return false;
  bool stopped = true;
  for (pid_t pid; stopped && (pid = next_process(processes)) > 0;) stopped = strchr("TtZX", state_of(pid)) != NULL;
  closedir(processes);
  return stopped;
}

static void signal_all(int number) {
  /* As PID 1 of the namespace this reaches every process in it except ourselves. */
  if (!linked) {
    kill(-1, number);
    return;
  }
  DIR *processes = opendir("/proc");
  for (pid_t pid; processes && (pid = next_process(processes)) > 0;) kill(pid, number);
  if (processes) closedir(processes);
}

bool freeze_namespace(void) {
  const struct timespec pause = {.tv_nsec = 1000000};
  int64_t started = now_ms(), tried = started;
  while (now_ms() - started < PATIENCE) {
    if (now_ms() - tried > RETRY_AFTER) {
      signal_all(SIGCONT);
      nanosleep(&pause, NULL);
      tried = now_ms();
    }
    signal_all(SIGSTOP);
    if (all_stopped()) return true;
    nanosleep(&pause, NULL);
  }
  return false;
}

void thaw_namespace(void) { signal_all(SIGCONT); }

static void send_control_to_all(uint8_t what) {
  for (struct call *call = calls; call; call = call->next) {
    if (call->supervisor.pid == 0 || call->supervisor.control < 0) continue;
    call->supervisor.control_used = true;
    bool sent = write(call->supervisor.control, &what, 1) == 1;
    if (what == CONTROL_FREEZE) call->unfrozen = sent;
  }
}

int freeze_all(uint32_t request) {
  /* Without a PID namespace this would stop the user's own processes. */
  if (confinement != CONFINE_NAMESPACE && !in_container) return -ENOTSUP;
  if (freezing) return -EBUSY;
  freezing = true;
  failed = false;
  freeze_request = request;
  /* The whole container is one PID namespace, and we are its PID 1. */
  if (in_container) failed = !freeze_namespace();
  else send_control_to_all(CONTROL_FREEZE);
  return 0;
}

int thaw_all(void) {
  if (confinement != CONFINE_NAMESPACE && !in_container) return -ENOTSUP;
  if (in_container) thaw_namespace();
  else send_control_to_all(CONTROL_THAW);
  return 0;
}

void call_frozen(struct call *call, bool stopped) {
  call->unfrozen = false;
  if (!stopped) failed = true;
}

void settle_freeze(void) {
  if (!freezing) return;
  for (struct call *call = calls; call; call = call->next)
    if (call->unfrozen && call->supervisor.pid != 0) return;
  freezing = false;
  if (failed) answer_fail(freeze_request, EAGAIN, "freeze");
  else answer(ANS_RESULT, freeze_request, NULL, 0);
}
