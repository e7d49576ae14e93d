/* Starting one command under a supervisor that can always end everything the command started. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"

enum { IN = 0, OUT = 1, ERR = 2, CONTROL = 3, STATUS = 4, CWD = 5, KEPT };

static const char *value_of(char *const *env, const char *name) {
  size_t length = strlen(name);
  for (; *env; env++)
    if (strncmp(*env, name, length) == 0 && (*env)[length] == '=') return *env + length + 1;
  return NULL;
}

/* Says why on the command's stderr and ends as a shell would. */
static void refuse_program(const char *program, int error) {
  const char *reason = error == ENOENT ? "not found" : error == ENOEXEC ? "not a program" : strerror(error);
  dprintf(ERR, "glovebox: %s: %s\n", program, reason);
  _exit(error == ENOENT || error == ENOTDIR ? 127 : 126);
}

static void execute(char *const *argv, char *const *env) {
  if (strchr(argv[0], '/')) {
    execve(argv[0], argv, env);
    refuse_program(argv[0], errno);
  }
  const char *path = value_of(env, "PATH");
  int reason = ENOENT;
  for (const char *at = path ? path : "/usr/local/bin:/usr/bin:/bin"; at;) {
    size_t length = strcspn(at, ":");
    char candidate[4096];
    /* An empty element would mean the current directory, which the inside can write. */
    if (length > 0 && (size_t)snprintf(candidate, sizeof candidate, "%.*s/%s", (int)length, at, argv[0]) < sizeof candidate) {
      execve(candidate, argv, env);
      if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) refuse_program(argv[0], errno);
      if (errno == EACCES) reason = EACCES;
    }
    at = at[length] ? at + length + 1 : NULL;
  }
  refuse_program(argv[0], reason);
}

static void become_command(const struct command *command) {
  setsid();
  if (command->terminal) ioctl(IN, TIOCSCTTY, 0);
  if (fchdir(CWD) != 0) _exit(126);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  for (int number = 1; number <= 64; number++) signal(number, SIG_DFL);
  umask(022);
  restore_descriptor_limit();
  close_from(CONTROL);
  if (command->jailed && install_filter() != 0) {
    dprintf(ERR, "glovebox: the system call filter could not be installed\n");
    _exit(126);
  }
  if (command->builtin) _exit(command->builtin());
  execute(command->argv, command->env);
}

/* Reaps until the command has ended; true when nothing else is left either. */
static bool reap(pid_t command, bool *reported) {
  for (;;) {
    int status;
    pid_t pid = waitpid(-1, &status, WNOHANG);
    if (pid == 0) return false;
    if (pid < 0) return errno == ECHILD;
    if (pid != command || *reported) continue;
    struct ending ending = {.signaled = WIFSIGNALED(status), .code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)};
    *reported = write(STATUS, &ending, sizeof ending) == sizeof ending;
  }
}

static void supervise(pid_t command, enum confinement how) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
  struct pollfd fds[] = {{.fd = CONTROL, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
  bool reported = false;
  while (!reap(command, &reported)) {
    if (poll(fds, 2, signals < 0 ? 50 : -1) < 0 && errno != EINTR) break;
    struct signalfd_siginfo info;
    while (read(signals, &info, sizeof info) > 0) continue;
    if (!fds[0].revents) continue;
    uint8_t number;
    ssize_t got = read(CONTROL, &number, 1);
    if (got == 1 && number != CONTROL_KILL_ALL) {
      /* Once it is reaped its number may be another's. */
      if (kill(-command, number) != 0 && !reported) kill(command, number);
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    break; /* told to end it all, or the agent is gone */
  }
  if (how == CONFINE_SUBREAPER) {
    kill_descendants();
    reap(command, &reported);
  }
  _exit(0); /* as PID 1 of its namespace this takes everything along */
}

/* When memory runs out, commands go before the agent. The file belongs to root unless the process can be dumped; in a namespace
 * of its own nobody is there yet to make use of that. */
static void go_first_when_memory_ends(enum confinement how) {
  if (how == CONFINE_NAMESPACE) prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0) {
    if (write(score, "500", 3) < 0) errno = 0;
    close(score);
  }
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

static void become_supervisor(const struct command *command, enum confinement how, int control, int status) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  go_first_when_memory_ends(how);
  int fds[KEPT] = {command->in, command->out, command->err, control, status, command->cwd};
  if (!arrange_descriptors(fds, KEPT)) _exit(125);
  if (how == CONFINE_NAMESPACE && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) != 0) {
    dprintf(ERR, "glovebox: a fresh /proc could not be mounted: %s\n", strerror(errno));
    _exit(125);
  }
  if (how == CONFINE_SUBREAPER) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (command->jailed && drop_privileges() != 0) {
    dprintf(ERR, "glovebox: capabilities could not be dropped\n");
    _exit(125);
  }
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  pid_t pid = fork();
  if (pid == 0) become_command(command);
  if (pid < 0) {
    dprintf(ERR, "glovebox: %s\n", strerror(errno));
    _exit(125);
  }
  int empty = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = IN; fd <= ERR; fd++)
    if (empty < 0 || dup2(empty, fd) < 0) close(fd);
  close(CWD);
  supervise(pid, how);
}

int start_command(const struct command *command, enum confinement how, struct supervisor *out) {
  int control[2], status[2];
  if (pipe2(control, O_CLOEXEC) != 0) return -errno;
  if (pipe2(status, O_CLOEXEC | O_NONBLOCK) != 0) {
    int error = errno;
    close(control[0]);
    close(control[1]);
    return -error;
  }
  unsigned long flags = SIGCHLD | (how == CONFINE_NAMESPACE ? CLONE_NEWPID | CLONE_NEWNS : 0u);
  long pid = syscall(SYS_clone, flags, 0, 0, 0, 0);
  if (pid == 0) become_supervisor(command, how, control[0], status[1]);
  int error = errno;
  close(control[0]);
  close(status[1]);
  if (pid < 0) {
    close(control[1]);
    close(status[0]);
    return -error;
  }
  fcntl(control[1], F_SETFL, O_NONBLOCK);
  *out = (struct supervisor){.pid = (pid_t)pid, .control = control[1], .status = status[0]};
  return 0;
}

void kill_supervised(const struct supervisor *supervisor, enum confinement how) {
  uint8_t all = CONTROL_KILL_ALL;
  if (how == CONFINE_NAMESPACE || write(supervisor->control, &all, 1) != 1) kill(supervisor->pid, SIGKILL);
}
