/* The resolver of a sandbox whose network is empty. It understands nothing of what it is asked: the host answers. */
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../guest.h"

#define MAX_QUERY 512 /* of a datagram; what is longer comes by a connection */
#define MAX_WAITING 64

static int resolver = -1;
/* Who waits for an answer. While all places are taken nothing is read, and the kernel drops what is too much. */
static struct {
  struct sockaddr_in from;
  bool waiting;
} askers[MAX_WAITING];

int start_resolver(uint32_t address, uint16_t port) {
  if (resolver >= 0) return -EADDRINUSE;
  struct sockaddr_in place = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(address)};
  int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -errno;
  if (bind(fd, (struct sockaddr *)&place, sizeof place) != 0) {
    int error = errno;
    close(fd);
    return -error;
  }
  if (in_container) write_resolver_file(address);
  resolver = fd;
  return 0;
}

static uint32_t free_place(void) {
  uint32_t place = 0;
  while (place < MAX_WAITING && askers[place].waiting) place++;
  return place;
}

struct pollfd resolver_poll(void) {
  bool takes = resolver >= 0 && !channel_is_full() && free_place() < MAX_WAITING;
  return (struct pollfd){.fd = takes ? resolver : -1, .events = POLLIN};
}

void take_queries(void) {
  for (uint32_t place; (place = free_place()) < MAX_WAITING;) {
    uint8_t body[4 + MAX_QUERY + 1];
    struct sockaddr_in from = {0};
    socklen_t length = sizeof from;
    ssize_t got = recvfrom(resolver, body + 4, MAX_QUERY + 1, 0, (struct sockaddr *)&from, &length);
    if (got < 0) return;
    if (got == 0 || got > MAX_QUERY) continue;
    askers[place].from = from;
    askers[place].waiting = true;
    write_u32(body, place);
    answer(ANS_QUERY, 0, body, 4 + (size_t)got);
  }
}

void answer_query(uint32_t place, const uint8_t *bytes, size_t length) {
  if (place >= MAX_WAITING || !askers[place].waiting) return;
  askers[place].waiting = false;
  const struct sockaddr *to = (const struct sockaddr *)&askers[place].from;
  /* Who no longer waits gets nothing, and that is no failure. */
  if (length > 0 && length <= MAX_QUERY && sendto(resolver, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL, to, sizeof askers[place].from) < 0) errno = 0;
}
