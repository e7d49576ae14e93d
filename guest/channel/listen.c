/* A listener in the sandbox, whose connections are handed to the host over the channel: the only way out of an empty network. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../calls/call.h"

#define MAX_CONNECTIONS 256
#define FIRST_CONNECTION 0x80000000u /* ids of calls that the guest opens; the host's are smaller */

int listener = -1;
static uint32_t next_connection = FIRST_CONNECTION;

int listen_on(uint16_t port) {
  if (listener >= 0) return -EADDRINUSE;
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), reuse = 1;
  if (fd < 0) return -errno;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse);
  if (bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, 128) != 0) {
    int error = errno;
    close(fd);
    return -error;
  }
  listener = fd;
  return 0;
}

static unsigned connections(void) {
  unsigned count = 0;
  for (struct call *call = calls; call; call = call->next) count += call->connection && call->reach.port == 0;
  return count;
}

void accept_connections(void) {
  for (int rounds = 0; rounds < 16; rounds++) {
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
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
    answer(ANS_ACCEPTED, call->id, NULL, 0);
  }
}
