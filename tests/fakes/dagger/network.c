/* A network of its own for each container of the fake engine, and what an engine puts before a command as process 1.
 *
 *   dagger-network net [in ADDRESS PORT SOCKET | out SOCKET ADDRESS PORT]... -- PROGRAM [ARGUMENT...]
 *   dagger-network init PROGRAM [ARGUMENT...]
 *
 * `in`: connections to that address of the new network go to a Unix socket outside of it. `out`: the other way. A connection
 * through a Unix socket starts with a `+` from the side that was called, once it has reached its end. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_LINKS 64
#define LAST_BYTES 500 /* milliseconds in which connections may bring what an ended program sent last */

struct link {
  bool inward;
  struct sockaddr_in tcp;
  struct sockaddr_un local;
  int listener;
};

static struct link links[MAX_LINKS];
static int link_count;

static void fail(const char *what) {
  fprintf(stderr, "dagger-network: %s: %s\n", what, strerror(errno));
  _exit(125);
}

static void write_text(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) fail(path);
  close(fd);
}

static void own_network(void) {
  if (unshare(CLONE_NEWNET) != 0) {
    uid_t uid = getuid();
    gid_t gid = getgid();
    char map[64];
    if (unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) fail("unshare");
    write_text("/proc/self/setgroups", "deny");
    snprintf(map, sizeof map, "%u %u 1", uid, uid);
    write_text("/proc/self/uid_map", map);
    snprintf(map, sizeof map, "%u %u 1", gid, gid);
    write_text("/proc/self/gid_map", map);
  }
  struct ifreq loopback = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || ioctl(fd, SIOCSIFFLAGS, &loopback) != 0) fail("loopback");
  close(fd);
}

static void add_link(bool inward, const char *address, const char *port, const char *path) {
  if (link_count == MAX_LINKS) fail("too many links");
  struct link *link = &links[link_count++];
  link->inward = inward;
  link->tcp = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  if (inet_pton(AF_INET, address, &link->tcp.sin_addr) != 1) fail(address);
  link->local.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof link->local.sun_path) fail(path);
  strcpy(link->local.sun_path, path);
  link->listener = socket(inward ? AF_INET : AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (link->listener < 0) fail("socket");
  setsockopt(link->listener, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
  int error = inward ? bind(link->listener, (struct sockaddr *)&link->tcp, sizeof link->tcp)
                     : bind(link->listener, (struct sockaddr *)&link->local, sizeof link->local);
  if (error != 0 || listen(link->listener, 64) != 0) fail(path);
}

static void copy(int from, int to) {
  static char bytes[65536];
  for (ssize_t got; (got = read(from, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR);)
    for (ssize_t done = 0, wrote; done < got; done += wrote)
      if ((wrote = send(to, bytes + done, (size_t)(got - done), MSG_NOSIGNAL)) < 0) goto over;
over:
  shutdown(to, SHUT_WR);
  shutdown(from, SHUT_RD);
}

/* One connection: a process for each direction. */
static void serve(const struct link *link, int caller) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  int other = socket(link->inward ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), error;
  if (link->inward) error = connect(other, (struct sockaddr *)&link->local, sizeof link->local);
  else error = connect(other, (struct sockaddr *)&link->tcp, sizeof link->tcp);
  char sign = '+';
  if (error == 0 && link->inward) error = read(other, &sign, 1) == 1 && sign == '+' ? 0 : -1;
  else if (error == 0) error = send(caller, &sign, 1, MSG_NOSIGNAL) == 1 ? 0 : -1;
  if (error != 0) {
    setsockopt(caller, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = 1}, sizeof(struct linger));
    _exit(0);
  }
  setsockopt(link->inward ? caller : other, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  pid_t back = fork();
  if (back == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    copy(other, caller);
    _exit(0);
  }
  copy(caller, other);
  waitpid(back, NULL, 0);
  _exit(0);
}

static int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

/* Takes connections until the program has ended, and ends as it did. */
static int relay(pid_t program, int signals) {
  struct pollfd ready[MAX_LINKS + 1];
  int code = -1, handlers = 0, waits = 0;
  for (;;) {
    for (int i = 0; i < link_count; i++) ready[i] = (struct pollfd){.fd = links[i].listener, .events = POLLIN};
    ready[link_count] = (struct pollfd){.fd = signals, .events = POLLIN};
    if (code >= 0 && (handlers == 0 || waits++ >= LAST_BYTES / 10)) return code;
    if (poll(code < 0 ? ready : ready + link_count, code < 0 ? (nfds_t)link_count + 1 : 1, code < 0 ? -1 : 10) < 0) continue;
    if (ready[link_count].revents) {
      struct signalfd_siginfo told;
      if (read(signals, &told, sizeof told) < 0) continue;
      int status;
      for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
        if (ended == program) code = code_of(status);
        else handlers--;
      }
    }
    for (int i = 0; code < 0 && i < link_count; i++) {
      int caller = ready[i].revents ? accept4(links[i].listener, NULL, NULL, SOCK_CLOEXEC) : -1;
      if (caller < 0) continue;
      pid_t handler = fork();
      if (handler == 0) {
        close(signals);
        serve(&links[i], caller);
      }
      if (handler > 0) handlers++;
      close(caller);
    }
  }
}

static int in_own_network(int argc, char **argv) {
  int at = 0;
  own_network();
  for (; at + 3 < argc && strcmp(argv[at], "--") != 0; at += 4) {
    bool inward = strcmp(argv[at], "in") == 0;
    if (inward) add_link(true, argv[at + 1], argv[at + 2], argv[at + 3]);
    else add_link(false, argv[at + 2], argv[at + 3], argv[at + 1]);
  }
  if (at + 1 >= argc) return 125;
  sigset_t child, before;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, &before);
  int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  pid_t program = fork();
  if (program < 0 || signals < 0) fail("fork");
  if (program == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    sigprocmask(SIG_SETMASK, &before, NULL);
    execvp(argv[at + 1], argv + at + 1);
    fail(argv[at + 1]);
  }
  /* Whoever reads the program's output waits for its end, not for ours. */
  for (int fd = 0; fd <= 1; fd++) close(fd);
  return relay(program, signals);
}

static pid_t first;

static void pass_on(int signal) { kill(first, signal); }

/* Process 1: it starts the command, passes signals on, and waits for whatever lost its parent. */
static int init(char **argv) {
  first = fork();
  if (first < 0) fail("fork");
  if (first == 0) {
    execvp(argv[0], argv);
    fprintf(stderr, "%s: %s\n", argv[0], strerror(errno));
    _exit(127);
  }
  for (int number = 1; number < 32; number++)
    if (number != SIGCHLD && number != SIGKILL && number != SIGSTOP) signal(number, pass_on);
  int status;
  for (pid_t ended; (ended = wait(&status)) > 0 || errno == EINTR;)
    if (ended == first) return code_of(status);
  return 125;
}

int main(int argc, char **argv) {
  if (argc > 2 && strcmp(argv[1], "net") == 0) return in_own_network(argc - 2, argv + 2);
  if (argc > 2 && strcmp(argv[1], "init") == 0) return init(argv + 2);
  return 125;
}
