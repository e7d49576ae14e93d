/* Which descriptors a forked process keeps, and how many it may have. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../guest.h"

#ifndef SYS_close_range
#define SYS_close_range 436
#endif
#define MAX_ARRANGED 8
#define WANTED_DESCRIPTORS 8192 /* five for each call, and some more */

static struct rlimit before;

static void close_between(unsigned first, unsigned last) {
  if (first > last || syscall(SYS_close_range, first, last, 0) == 0) return;
  for (unsigned fd = first; fd <= last && fd < 65536; fd++) close((int)fd);
}

void close_from(unsigned first) { close_between(first, ~0u); }

bool arrange_descriptors(const int *fds, int count) {
  int moved[MAX_ARRANGED];
  if (count > MAX_ARRANGED) return false;
  /* All others are closed first: they may have used up the limit. */
  for (unsigned from = 0;;) {
    unsigned next = ~0u;
    for (int i = 0; i < count; i++)
      if (fds[i] >= (int)from && (unsigned)fds[i] < next) next = (unsigned)fds[i];
    if (next == ~0u) {
      close_from(from);
      break;
    }
    if (next > from) close_between(from, next - 1);
    from = next + 1;
  }
  for (int i = 0; i < count; i++)
    if ((moved[i] = fcntl(fds[i], F_DUPFD, count)) < 0) return false;
  for (int i = 0; i < count; i++)
    if (dup2(moved[i], i) < 0) return false;
  close_from((unsigned)count);
  return true;
}

void reserve_standard_descriptors(void) {
  int fd;
  do fd = open("/dev/null", O_RDWR);
  while (fd >= 0 && fd <= 2);
  if (fd > 2) close(fd);
}

void raise_descriptor_limit(void) {
  if (getrlimit(RLIMIT_NOFILE, &before) != 0 || before.rlim_cur >= WANTED_DESCRIPTORS) {
    before = (struct rlimit){0};
    return;
  }
  struct rlimit more = {.rlim_cur = before.rlim_max < WANTED_DESCRIPTORS ? before.rlim_max : WANTED_DESCRIPTORS, .rlim_max = before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &more);
}

void restore_descriptor_limit(void) {
  if (before.rlim_max > 0) setrlimit(RLIMIT_NOFILE, &before);
}
