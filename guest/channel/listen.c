/* Listeners in the sandbox, whose connections are handed to the host over the channel: the only way out of an empty network. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../calls/call.h"

#define MAX_CONNECTIONS 256
#define FIRST_CONNECTION 0x80000000u /* ids of calls that the guest opens; the host's are smaller */

static struct listener {
  int fd;
  uint32_t address;
  uint16_t port;
  bool unnamed; /* it is the one of REQ_LISTEN, and the host need not hear which one it is */
} listeners[MAX_LISTENERS];
static size_t listener_count;
static uint32_t next_connection = FIRST_CONNECTION;

static struct listener *find_listener(uint32_t address, uint16_t port) {
  for (size_t i = 0; i < listener_count; i++)
    if (listeners[i].address == address && listeners[i].port == port) return &listeners[i];
  return NULL;
}

static int add_listener(uint32_t address, uint16_t port, bool unnamed) {
  if (listener_count >= MAX_LISTENERS) return -EMFILE;
  struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), reuse = 1;
  if (fd < 0) return -errno;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  if (bind(fd, (struct sockaddr *)&place, sizeof place) != 0 || listen(fd, 128) != 0) {
    int error = errno;
    close(fd);
    return -error;
  }
  listeners[listener_count++] = (struct listener){fd, address, port, unnamed};
  return 0;
}

int listen_on(uint16_t port) {
  for (size_t i = 0; i < listener_count; i++)
    if (listeners[i].unnamed) return -EADDRINUSE;
  return add_listener(INADDR_LOOPBACK, port, true);
}

int listen_at(uint32_t address, uint16_t port) { return find_listener(address, port) ? -EADDRINUSE : add_listener(address, port, false); }

int stop_listening(uint32_t address, uint16_t port) {
  struct listener *found = find_listener(address, port);
  if (!found || found->unnamed) return -ENOENT;
  close(found->fd);
  *found = listeners[--listener_count];
  return 0;
}

static unsigned connections(void) {
  unsigned count = 0;
  for (struct call *call = calls; call; call = call->next) count += call->connection && call->reach.port == 0;
  return count;
}

static void accept_connections(const struct listener *listener) {
  uint8_t place[6];
  write_u32(place, listener->address);
  place[4] = (uint8_t)listener->port;
  place[5] = (uint8_t)(listener->port >> 8);
  for (int rounds = 0; rounds < 16; rounds++) {
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) return;
    int writer = connections() < MAX_CONNECTIONS ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
    struct call *call = writer < 0 ? NULL : call_new(next_connection);
    if (!call) {
      close(fd);
      if (writer >= 0) close(writer);
      continue;
    }
    next_connection = next_connection == UINT32_MAX ? FIRST_CONNECTION : next_connection + 1;
    call->connection = true;
    call->out = fd;
    call->in = writer;
    answer(ANS_ACCEPTED, call->id, place, listener->unnamed ? 0 : sizeof place);
  }
}

size_t listeners_poll(struct pollfd *fds) {
  for (size_t i = 0; i < listener_count; i++) fds[i] = (struct pollfd){.fd = listeners[i].fd, .events = POLLIN};
  return listener_count;
}

void listeners_ready(const struct pollfd *fds, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (fds[i].revents) accept_connections(&listeners[i]);
}
