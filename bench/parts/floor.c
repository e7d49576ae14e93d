/* The smallest possible helper: starts /bin/true for each byte it reads, and answers with a byte when it has ended. */
#define _GNU_SOURCE
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(void) {
  sigset_t set, none;
  sigemptyset(&none);
  sigemptyset(&set);
  sigaddset(&set, SIGCHLD);
  sigprocmask(SIG_BLOCK, &set, NULL);
  posix_spawnattr_t plain;
  posix_spawnattr_init(&plain);
  posix_spawnattr_setsigmask(&plain, &none);
  posix_spawnattr_setflags(&plain, POSIX_SPAWN_SETSIGMASK);
  struct pollfd ready[] = {{.fd = 0, .events = POLLIN}, {.fd = signalfd(-1, &set, 0), .events = POLLIN}};
  char *argv[] = {"/bin/true", NULL}, bytes[64];
  while (poll(ready, 2, -1) > 0) {
    if (ready[1].revents) {
      struct signalfd_siginfo info;
      if (read(ready[1].fd, &info, sizeof info) < 0) return 1;
      while (waitpid(-1, NULL, WNOHANG) > 0)
        if (write(1, "", 1) != 1) return 1;
    }
    if (!ready[0].revents) continue;
    ssize_t count = read(0, bytes, sizeof bytes);
    if (count <= 0) return 0;
    pid_t pid;
    while (count-- > 0)
      if (posix_spawn(&pid, argv[0], NULL, &plain, argv, environ) != 0) return 1;
  }
  return 1;
}
