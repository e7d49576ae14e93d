/* For engines whose containers cannot be attached to: the guest connects to its host, identifies itself, and serves on that
 * connection. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "../guest.h"

extern char **environ;

#define TRIES 100 /* the host may become reachable a little later than we start */
#define PAUSE_MS 50

static int connect_to(const char *host, const char *port) {
  struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM}, *found = NULL;
  if (getaddrinfo(host, port, &hints, &found) != 0) return -1;
  int fd = -1;
  for (struct addrinfo *at = found; at && fd < 0; at = at->ai_next) {
    fd = socket(at->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) != 0) {
      close(fd);
      fd = -1;
    }
  }
  freeaddrinfo(found);
  return fd;
}

/* `NAME=value` as it stands in an environment. */
static char *find_variable(char **env, const char *name) {
  size_t length = strlen(name);
  for (char **at = env; *at; at++)
    if (strncmp(*at, name, length) == 0 && (*at)[length] == '=') return *at;
  return NULL;
}

/* Sends one line, the number of this step, which the host accepts once. Then clears it where the kernel shows it: a command can
 * read /proc/PID/environ of every process of its user, which is the memory that the strings were first put into. */
static bool send_step_number(int fd) {
  char *variable = find_variable(environ, "GLOVEBOX_STEP"), *number = variable ? strchr(variable, '=') + 1 : "";
  if (!*number) return false;
  bool sent = dprintf(fd, "%s\n", number) > 0;
  unsetenv("GLOVEBOX_STEP");
  explicit_bzero(variable, strlen(variable));
  return sent;
}

/* Names of variables that commands get from the container, because the host does not know their values. */
static char **inherited;

bool add_inherited_env(char ***env) {
  size_t names = 0, given = 0;
  while (inherited && inherited[names]) names++;
  while ((*env)[given]) given++;
  char **all = names ? realloc(*env, (given + names + 1) * sizeof *all) : *env;
  if (!all) return false;
  *env = all;
  for (size_t i = 0; i < names; i++) {
    all[given] = NULL;
    char *variable = find_variable(all, inherited[i]) ? NULL : find_variable(environ, inherited[i]);
    if (variable) all[given++] = variable;
  }
  all[given] = NULL;
  return true;
}

/* dial HOST PORT ROOT [VARIABLE...] */
int dial_main(int argc, char **argv) {
  if (argc < 3) return 125;
  inherited = argv + 3;
  int fd = -1;
  for (int tries = 0; fd < 0 && tries < TRIES; tries++) {
    if (tries > 0) nanosleep(&(struct timespec){.tv_nsec = PAUSE_MS * 1000000L}, NULL);
    fd = connect_to(argv[0], argv[1]);
  }
  if (fd < 0) {
    fprintf(stderr, "glovebox: the host does not answer at %s:%s\n", argv[0], argv[1]);
    return 125;
  }
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  if (!send_step_number(fd)) return 125;
  return serve(fd, fd, argv[2], false, false);
}
