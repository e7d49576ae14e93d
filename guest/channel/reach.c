/* Connections that the host opens to servers in the sandbox: to 127.0.0.1, else to ::1, and to no other address, ever. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../calls/call.h"

#define MAX_OPENED 256
#define RETRY_AFTER 20 /* ms between two attempts to reach a port that is waited for */

/* Leaves the socket in `call->in`. 0: it is connected or about to be. */
static int try_address(struct call *call, bool ipv6) {
  const struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(call->reach.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(call->reach.port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  int fd = socket(ipv6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;
  if (fd < 0) return -errno;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  int failed = ipv6 ? connect(fd, (const struct sockaddr *)&six, sizeof six) : connect(fd, (const struct sockaddr *)&four, sizeof four);
  if (failed && errno != EINPROGRESS) {
    int error = errno;
    close(fd);
    return -error;
  }
  call->in = fd;
  return 0;
}

/* Without a server the kernel can choose the port itself as the local one, and connect the socket to itself. */
static bool is_own_port(const struct call *call) {
  struct sockaddr_in6 local = {0}; /* the port is at the same place in both families */
  socklen_t length = sizeof local;
  return getsockname(call->in, (struct sockaddr *)&local, &length) == 0 && local.sin6_port == htons(call->reach.port);
}

void reset_connection(const struct call *call) {
  const struct linger at_once = {.l_onoff = 1};
  int fd = call->in >= 0 ? call->in : call->out;
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

static void end_reach(struct call *call, int error) {
  if (error) answer_fail(call->id, -error, "the port");
  else answer(ANS_RESULT, call->id, NULL, 0);
  call_free(call);
}

static void connected(struct call *call) {
  if (call->reach.state == REACH_AWAIT) {
    end_reach(call, 0);
    return;
  }
  call->out = fcntl(call->in, F_DUPFD_CLOEXEC, 0);
  if (call->out < 0) {
    end_reach(call, -errno);
    return;
  }
  call->reach.state = REACH_DONE;
  answer(ANS_STARTED, call->id, NULL, 0);
  flush_input(call);
}

/* Starts the next attempt, or ends the call if there is none. */
static void try_next(struct call *call) {
  while (call->reach.tried < 2) {
    int error = try_address(call, call->reach.tried++ == 1);
    if (!error) return;
    if (!call->reach.error) call->reach.error = error;
  }
  if (call->reach.state == REACH_CONNECT) end_reach(call, call->reach.error);
  else call->reach.retry_at = now_ms() + RETRY_AFTER;
}

static void check_attempt(struct call *call) {
  int error = 0;
  socklen_t length = sizeof error;
  call->reach.ready = false;
  if (getsockopt(call->in, SOL_SOCKET, SO_ERROR, &error, &length) != 0) error = errno;
  if (!error && is_own_port(call)) {
    error = ECONNREFUSED;
    reset_connection(call);
  }
  if (!error) {
    connected(call);
    return;
  }
  close_fd(&call->in);
  if (!call->reach.error) call->reach.error = -error;
  try_next(call);
}

int settle_reach(struct call *call, int64_t now) {
  bool awaits = call->reach.state == REACH_AWAIT;
  if (awaits && now >= call->deadline) {
    end_reach(call, -ETIMEDOUT);
    return -1;
  }
  if (call->in >= 0) {
    if (call->reach.ready) {
      check_attempt(call);
      return 0; /* the call may be gone: the next round finds out */
    }
  } else if (now >= call->reach.retry_at) {
    call->reach.tried = 0;
    try_next(call);
    return 0;
  }
  if (!awaits) return -1;
  int64_t until = call->in < 0 && call->reach.retry_at < call->deadline ? call->reach.retry_at : call->deadline;
  return (int)(until - now);
}

static unsigned opened(void) {
  unsigned count = 0;
  for (struct call *call = calls; call; call = call->next) count += call->reach.port != 0 && call->reach.state != REACH_AWAIT;
  return count;
}

static int start_reach(uint32_t id, uint16_t port, enum reach_state state, uint32_t patience) {
  struct call *call = state == REACH_AWAIT || opened() < MAX_OPENED ? call_new(id) : NULL;
  if (!call) return -EAGAIN;
  call->connection = true;
  call->reach = (struct reach){.state = state, .port = port};
  if (state == REACH_AWAIT) call->deadline = now_ms() + patience;
  try_next(call);
  return 0;
}

int connect_port(uint32_t id, uint16_t port) { return start_reach(id, port, REACH_CONNECT, 0); }

int await_port(uint32_t id, uint16_t port, uint32_t patience) { return start_reach(id, port, REACH_AWAIT, patience); }
