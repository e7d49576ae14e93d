/* `relay attach`: connects to the guest of this container and passes bytes on, between it and whoever started us from outside. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../guest.h"
#include "link.h"

/* Exit codes, which the host knows. */
enum { ENDED = 0, NO_GUEST = 3, REFUSED = 4, WATCHED = 5 };

static struct queue in_out[2]; /* to the guest; to the host */

/* Somebody who traces us would see the token. We cannot be traced any more, so whoever does has begun before. */
static bool is_traced(void) {
  char line[256];
  bool traced = true;
  FILE *status = fopen("/proc/self/status", "re");
  while (status && fgets(line, sizeof line, status))
    if (strncmp(line, "TracerPid:", 10) == 0) traced = strcmp(line + 10, "\t0\n") != 0;
  if (status) fclose(status);
  return traced;
}

/* The guest is process 1 here. A process of another container that has taken the name has no number here. */
static bool is_guest(int fd) {
  struct ucred who;
  socklen_t size = sizeof who;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.pid == 1;
}

/* False at the end of the stream. */
static bool take(int fd, struct queue *to) {
  ssize_t got = read(fd, queue_room(to, DATA_BYTES), DATA_BYTES);
  if (got > 0) to->end += (size_t)got;
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

static bool give(int fd, struct queue *from) {
  while (queue_length(from) > 0) {
    ssize_t wrote = write(fd, from->data + from->start, queue_length(from));
    if (wrote > 0) queue_take(from, (size_t)wrote);
    else if (errno == EAGAIN) return true;
    else if (errno != EINTR) return false;
  }
  return true;
}

int attach_main(void) {
  struct sockaddr_un address;
  socklen_t size = link_address(&address);
  bool answered = false;
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  if (is_traced()) return WATCHED;
  signal(SIGPIPE, SIG_IGN);
  int guest = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (guest < 0 || connect(guest, (struct sockaddr *)&address, size) != 0 || !is_guest(guest)) return NO_GUEST;
  for (int i = 0, fds[] = {0, 1, guest}; i < 3; i++) fcntl(fds[i], F_SETFL, fcntl(fds[i], F_GETFL) | O_NONBLOCK);
  for (;;) {
    bool asks = queue_length(&in_out[0]) < DATA_BYTES, answers = queue_length(&in_out[1]) < DATA_BYTES;
    struct pollfd fds[] = {
        {.fd = asks ? 0 : -1, .events = POLLIN},
        {.fd = queue_length(&in_out[1]) > 0 ? 1 : -1, .events = POLLOUT},
        {.fd = guest, .events = (short)((answers ? POLLIN : 0) | (queue_length(&in_out[0]) > 0 ? POLLOUT : 0))},
    };
    if (poll(fds, 3, -1) < 0 && errno != EINTR) return NO_GUEST;
    if (fds[0].revents && !take(0, &in_out[0])) {
      give(guest, &in_out[0]); /* the last letter may be in it */
      return ENDED;
    }
    /* Nobody takes what we have, and the guest is gone: another connection brings it again. */
    if (!answers && fds[2].revents & (POLLHUP | POLLERR)) return ENDED;
    if (answers && fds[2].revents & (POLLIN | POLLHUP | POLLERR)) {
      if (!take(guest, &in_out[1])) return answered ? ENDED : REFUSED;
      answered = true;
    }
    if (!give(1, &in_out[1]) || !give(guest, &in_out[0])) return answered ? ENDED : REFUSED;
  }
}
