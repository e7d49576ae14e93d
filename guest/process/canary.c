/* canary: shows whether the network policies of a cluster are enforced. `canary listen PORT` accepts connections until it is killed. `canary dial
 * MILLISECONDS ADDRESS PORT ...` tries to connect to each address again and again, and exits with a bit for each that it reached. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../guest.h"

#define FAILED 125
#define MOST_TARGETS 6 /* their bits stay below FAILED */
#define PATIENCE 500   /* for one attempt, in milliseconds */
#define PAUSE 100

union address {
  struct sockaddr any;
  struct sockaddr_in v4;
  struct sockaddr_in6 v6;
};

struct target {
  union address address;
  socklen_t length;
  bool reached;
};

static bool parse_port(const char *text, uint16_t *port) {
  char *end;
  long value = strtol(text, &end, 10);
  *port = htons((uint16_t)value);
  return *text && !*end && value > 0 && value < 65536;
}

static bool parse_target(const char *address, const char *port, struct target *target) {
  memset(target, 0, sizeof *target);
  if (inet_pton(AF_INET, address, &target->address.v4.sin_addr) == 1) {
    target->address.any.sa_family = AF_INET;
    target->length = sizeof target->address.v4;
    return parse_port(port, &target->address.v4.sin_port);
  }
  if (inet_pton(AF_INET6, address, &target->address.v6.sin6_addr) != 1) return false;
  target->address.any.sa_family = AF_INET6;
  target->length = sizeof target->address.v6;
  return parse_port(port, &target->address.v6.sin6_port);
}

/* The addresses of a pod may be of one family only. */
static int listen_everywhere(uint16_t port) {
  union address all = {.v6 = {.sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = IN6ADDR_ANY_INIT}};
  socklen_t length = sizeof all.v6;
  int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), off = 0, on = 1;
  if (fd < 0) {
    all = (union address){.v4 = {.sin_family = AF_INET, .sin_port = port}};
    length = sizeof all.v4;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  } else {
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  return fd >= 0 && bind(fd, &all.any, length) == 0 && listen(fd, 64) == 0 ? fd : -1;
}

static int canary_listen(const char *text) {
  uint16_t port;
  int fd = parse_port(text, &port) ? listen_everywhere(port) : -1;
  if (fd < 0) return FAILED;
  for (;;) {
    int connection = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    if (connection >= 0) close(connection);
    else if (errno != EINTR && errno != ECONNABORTED) return FAILED;
  }
}

static bool can_connect(const struct target *target) {
  int fd = socket(target->address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return false;
  int error = connect(fd, &target->address.any, target->length) == 0 ? 0 : errno;
  if (error == EINPROGRESS) {
    struct pollfd waiting = {.fd = fd, .events = POLLOUT};
    socklen_t length = sizeof error;
    if (poll(&waiting, 1, PATIENCE) != 1 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = ETIMEDOUT;
  }
  close(fd);
  return error == 0;
}

static int canary_dial(int argc, char **argv) {
  struct target targets[MOST_TARGETS];
  int count = (argc - 1) / 2, reached = 0;
  if (count < 1 || count > MOST_TARGETS || argc % 2 == 0) return FAILED;
  for (int i = 0; i < count; i++)
    if (!parse_target(argv[1 + 2 * i], argv[2 + 2 * i], &targets[i])) return FAILED;
  int64_t end = now_ms() + strtol(argv[0], NULL, 10);
  do {
    for (int i = 0; i < count; i++) {
      if (!targets[i].reached && can_connect(&targets[i])) {
        targets[i].reached = true;
        reached |= 1 << i;
      }
    }
    poll(NULL, 0, PAUSE);
  } while (now_ms() < end);
  return reached;
}

int canary_main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[0], "listen") == 0) return canary_listen(argv[1]);
  if (argc >= 4 && strcmp(argv[0], "dial") == 0) return canary_dial(argc - 1, argv + 1);
  return FAILED;
}
