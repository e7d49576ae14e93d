/* Starts a command under a supervisor, which can always end everything that the command started. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../guest.h"

enum { IN = 0, OUT = 1, ERR = 2, CONTROL = 3, STATUS = 4, CWD = 5, DESCRIPTORS, COMMANDS = 5 };

static const char *value_of(char *const *env, const char *name) {
  size_t length = strlen(name);
  for (; *env; env++)
    if (strncmp(*env, name, length) == 0 && (*env)[length] == '=') return *env + length + 1;
  return NULL;
}

/* Prints the reason on the command's stderr and exits as a shell would. */
static void fail_exec(const char *program, int error) {
  const char *reason = error == ENOENT ? "not found" : error == ENOEXEC ? "not a program" : strerror(error);
  dprintf(ERR, "glovebox: %s: %s\n", program, reason);
  _exit(error == ENOENT || error == ENOTDIR ? 127 : 126);
}

static void execute(char *const *argv, char *const *env) {
  if (strchr(argv[0], '/')) {
    execve(argv[0], argv, env);
    fail_exec(argv[0], errno);
  }
  const char *path = value_of(env, "PATH");
  int reason = ENOENT;
  for (const char *at = path ? path : "/usr/local/bin:/usr/bin:/bin"; at;) {
    size_t length = strcspn(at, ":");
    char candidate[4096];
    /* An empty element would be the current directory, where commands can write. */
    if (length > 0 && (size_t)snprintf(candidate, sizeof candidate, "%.*s/%s", (int)length, at, argv[0]) < sizeof candidate) {
      execve(candidate, argv, env);
      if (errno != ENOENT && errno != ENOTDIR && errno != EACCES) fail_exec(argv[0], errno);
      if (errno == EACCES) reason = EACCES;
    }
    at = at[length] ? at + length + 1 : NULL;
  }
  fail_exec(argv[0], reason);
}

/* Adds the user's home directory to an environment that has no HOME. */
static void add_home(char ***env, const char *home) {
  static char variable[MAX_HOME + 5];
  if (value_of(*env, "HOME")) return;
  size_t count = 0;
  while ((*env)[count]) count++;
  char **longer = realloc(*env, (count + 2) * sizeof *longer);
  if (!longer) return;
  snprintf(variable, sizeof variable, "HOME=%s", home);
  longer[count] = variable;
  longer[count + 1] = NULL;
  *env = longer;
}

static void must_install_filter(void) {
  if (install_seccomp_filter() == 0) return;
  dprintf(ERR, "glovebox: cannot install the seccomp filter\n");
  _exit(126);
}

/* In a container: becomes the user, and drops the last capabilities. */
static void must_become_identity(const struct command *command) {
  if (become_identity(command->as, !command->jailed) == 0) return;
  dprintf(ERR, "glovebox: cannot change the user: %s\n", strerror(errno));
  _exit(126);
}

/* What every command inherits, whatever it is: a pooled supervisor does this once for all of them. */
static void prepare_commands(bool in_jail) {
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  umask(022);
  restore_descriptor_limit();
  if (!in_jail) return;
  if (in_container) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* or the filter would be refused; the user can still be changed */
  must_install_filter();
}

/* The command enters its place by itself, as its own user and in its own namespaces, so it gets nowhere that it could not get to anyway. */
static void must_enter_place(const char *place) {
  struct ending entered = {.signaled = ENDING_ENTERED, .code = enter_place(place)};
  if (write(STATUS, &entered, sizeof entered) != sizeof entered || entered.code) _exit(126);
}

/* The last steps. In the child of a pooled supervisor, which shares its memory, they must allocate nothing. */
static void become_command(const struct command *command) {
  setsid();
  if (command->terminal) ioctl(IN, TIOCSCTTY, 0);
  if (command->as) must_become_identity(command);
  if (command->place) must_enter_place(command->place);
  close_from(CONTROL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (command->builtin) _exit(command->builtin());
  execute(command->argv, command->env);
}

/* A command under supervision. */
struct supervised {
  pid_t pid;
  enum confinement how;
  bool pooled; /* another command may follow */
  bool reported;
  bool reuse; /* the supervisor goes on to the next command */
};

/* Reaps what has ended, and reports the end of the command itself. True when no process is left. */
static bool reap(struct supervised *it) {
  struct ending ending = {.code = -1};
  pid_t pid;
  for (int status; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    if (pid == it->pid) ending = (struct ending){.signaled = WIFSIGNALED(status), .code = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status)};
  bool gone = pid < 0 && errno == ECHILD;
  if (ending.code < 0 || it->reported) return gone;
  if (gone) ending.tree = it->pooled && is_supervisor_unchanged() ? TREE_GONE_REUSE : TREE_GONE;
  it->reported = write(STATUS, &ending, sizeof ending) == sizeof ending;
  it->reuse = it->reported && ending.tree == TREE_GONE_REUSE;
  return gone;
}

/* Watches a command until it and everything it started has ended, or has to. Returns when another command may come. */
static void supervise(struct supervised *it, int signals) {
  struct pollfd fds[] = {{.fd = CONTROL, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
  while (!reap(it)) {
    if (poll(fds, 2, signals < 0 ? 50 : -1) < 0 && errno != EINTR) break;
    struct signalfd_siginfo info;
    if (fds[1].revents && read(signals, &info, sizeof info) < 0) errno = 0;
    if (!fds[0].revents) continue;
    uint8_t number;
    ssize_t got = read(CONTROL, &number, 1);
    if (got == 1 && it->how == CONFINE_NAMESPACE && (number == CONTROL_FREEZE || number == CONTROL_THAW)) {
      struct ending frozen = {.signaled = ENDING_FROZEN};
      if (number == CONTROL_THAW) thaw_namespace();
      else frozen.code = freeze_namespace() ? 0 : 1;
      if (number == CONTROL_FREEZE && write(STATUS, &frozen, sizeof frozen) != sizeof frozen) break;
      continue;
    }
    if (got == 1 && number < CONTROL_THAW) {
      /* Once it is reaped its pid may belong to another process. */
      if (kill(-it->pid, number) != 0 && !it->reported) kill(it->pid, number);
      continue;
    }
    if (got < 0 && errno == EINTR) continue;
    break; /* asked to kill everything, or the guest is gone */
  }
  if (it->reuse) return;
  if (it->how == CONFINE_SUBREAPER) {
    kill_descendants();
    reap(it);
  }
  _exit(0); /* as PID 1 of its namespace this ends everything in it */
}

static int child_signals(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* When memory runs out, commands are killed before the guest. The file belongs to root unless the process is dumpable; in its new
 * namespace nobody can make use of that yet. */
static void raise_oom_score(enum confinement how) {
  if (how == CONFINE_NAMESPACE) prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (score >= 0) {
    if (write(score, "500", 3) < 0) errno = 0;
    close(score);
  }
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

/* What a supervisor needs, whatever its command. Returns what failed, or null. */
static const char *prepare_supervisor(enum confinement how, bool in_jail) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  raise_oom_score(how);
  if (how == CONFINE_NAMESPACE && !mount_proc()) return "cannot mount /proc";
  if (how == CONFINE_SUBREAPER) prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  if (in_jail && !in_container && drop_privileges() != 0) return "cannot drop capabilities";
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return NULL;
}

/* Exits when the command could not be started, with the errno as exit code. */
static void exit_start_failed(int error) { _exit(error > 0 && error < START_FAILED ? error : START_FAILED); }

static void become_supervisor(const struct command *command, enum confinement how, int control, int status) {
  int fds[DESCRIPTORS] = {command->in, command->out, command->err, control, status, command->cwd};
  if (!arrange_descriptors(fds, DESCRIPTORS)) exit_start_failed(EMFILE);
  const char *failed = prepare_supervisor(how, command->jailed);
  if (failed) {
    int error = errno;
    dprintf(ERR, "glovebox: %s: %s\n", failed, strerror(error));
    exit_start_failed(error);
  }
  if (in_container) become_supervisor_user();
  int lost = command->place ? 0 : enter_directory(CWD, how);
  if (lost) exit_start_failed(lost);
  pid_t pid = fork();
  if (pid == 0) {
    prepare_commands(command->jailed);
    struct command own = *command;
    if (own.as && !own.builtin) add_home(&own.env, own.as->home);
    become_command(&own);
  }
  if (pid < 0) exit_start_failed(errno);
  /* The command's streams must not stay open here. */
  int empty = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = IN; fd <= ERR; fd++)
    if (empty < 0 || dup2(empty, fd) < 0) close(fd);
  close_from(CWD);
  if (in_container) keep_kill_capability();
  supervise(&(struct supervised){.pid = pid, .how = how}, child_signals());
}

/* A command that a pooled supervisor has received. */
struct received {
  struct command command;
  struct identity identity;
  int fds[COMMAND_DESCRIPTORS];
};

static int become_received(void *argument) {
  const struct received *it = argument;
  for (int fd = IN; fd <= ERR; fd++)
    if (dup2(it->fds[fd], fd) < 0) _exit(START_FAILED);
  become_command(&it->command);
  return START_FAILED;
}

/* Waits for the next command and starts it. The child shares our memory until it executes the program, and we wait until then: to copy
 * that memory takes longer than all the rest. */
static pid_t start_received(enum confinement how) {
  static struct received it;
  static _Alignas(16) uint8_t stack[64 << 10];
  it.command = (struct command){.jailed = true};
  if (!receive_command(COMMANDS, &it.command, &it.identity, it.fds)) _exit(0); /* the guest is gone */
  if (it.command.as && !it.command.builtin) add_home(&it.command.env, it.identity.home);
  int lost = it.command.place ? 0 : enter_directory(it.fds[COMMAND_CWD], how);
  if (lost) exit_start_failed(lost);
  /* The self-test executes no program, so it must not have our memory. */
  int flags = it.command.builtin ? SIGCHLD : CLONE_VM | CLONE_VFORK | SIGCHLD;
  pid_t pid = clone(become_received, stack + sizeof stack, flags, &it);
  if (pid < 0) exit_start_failed(errno);
  if (chdir("/") != 0) exit_start_failed(errno); /* a command's directory must not stay in use here */
  for (int i = 0; i < COMMAND_DESCRIPTORS; i++) close(it.fds[i]);
  free_received(&it.command);
  return pid;
}

/* Supervises one command after the other. */
static void become_pooled_supervisor(enum confinement how, int control, int status, int commands) {
  int empty = open("/dev/null", O_RDWR | O_CLOEXEC);
  int fds[] = {empty, empty, empty, control, status, commands};
  if (empty < 0 || !arrange_descriptors(fds, COMMANDS + 1) || prepare_supervisor(how, true)) _exit(START_FAILED);
  if (in_container) {
    become_supervisor_user();
    keep_start_capabilities();
  }
  prepare_commands(true);
  remember_supervisor_state();
  for (int signals = child_signals();;) supervise(&(struct supervised){.pid = start_received(how), .how = how, .pooled = true}, signals);
}

/* Makes the pipes and the process. Returns twice: 0 in the child, which gets its ends; in the parent the pid, or a negative
 * errno. */
static int fork_supervisor(enum confinement how, struct supervisor *out, int child_ends[2]) {
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
  if (pid == 0) {
    child_ends[0] = control[0];
    child_ends[1] = status[1];
    return 0;
  }
  int error = errno;
  close(control[0]);
  close(status[1]);
  if (pid < 0) {
    close(control[1]);
    close(status[0]);
    return -error;
  }
  fcntl(control[1], F_SETFL, O_NONBLOCK);
  *out = (struct supervisor){.pid = (pid_t)pid, .control = control[1], .status = status[0], .commands = -1};
  return (int)pid;
}

int start_command(const struct command *command, enum confinement how, struct supervisor *out) {
  int ends[2], forked = fork_supervisor(how, out, ends);
  if (forked == 0) become_supervisor(command, how, ends[0], ends[1]);
  return forked < 0 ? forked : 0;
}

int start_pooled_supervisor(enum confinement how, struct supervisor *out) {
  int commands[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, commands) != 0) return -errno;
  int ends[2], forked = fork_supervisor(how, out, ends);
  if (forked == 0) forget_channel();
  if (forked == 0) become_pooled_supervisor(how, ends[0], ends[1], commands[1]);
  close(commands[1]);
  out->commands = commands[0];
  if (forked < 0) close(commands[0]);
  return forked;
}

/* Becomes this program again, with another verb: nothing of the guest's memory, environment or descriptors is left. */
static void become_file_process(enum confinement how, int channel, int program) {
  int empty = open("/dev/null", O_RDWR | O_CLOEXEC);
  int fds[] = {empty, empty, empty, channel, program};
  if (empty < 0 || !arrange_descriptors(fds, 5) || prepare_supervisor(how, jailed)) _exit(START_FAILED);
  if (in_container && become_identity(&default_identity, false) != 0) _exit(START_FAILED);
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  umask(022);
  restore_descriptor_limit();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  fcntl(4, F_SETFD, FD_CLOEXEC);
  static char *const argv[] = {"glovebox-guest", "serve-files", NULL}, *const env[] = {NULL};
  syscall(SYS_execveat, 4, "", argv, env, AT_EMPTY_PATH);
  _exit(START_FAILED);
}

int start_file_process(enum confinement how, int channel) {
  int program = open("/proc/self/exe", O_PATH | O_CLOEXEC); /* it need not be readable */
  if (program < 0) return -errno;
  unsigned long flags = SIGCHLD | (how == CONFINE_NAMESPACE ? CLONE_NEWPID | CLONE_NEWNS : 0u);
  long pid = syscall(SYS_clone, flags, 0, 0, 0, 0);
  if (pid == 0) become_file_process(how, channel, program);
  int error = errno;
  close(program);
  return pid < 0 ? -error : (int)pid;
}

void kill_supervised(const struct supervisor *supervisor, enum confinement how) {
  uint8_t all = CONTROL_KILL_ALL;
  if (how == CONFINE_NAMESPACE || write(supervisor->control, &all, 1) != 1) kill(supervisor->pid, SIGKILL);
}
