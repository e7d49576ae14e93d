/* head GIT-DIRECTORY: which commit is checked out, as far as two plain files say so. The directory is hostile: no link is followed, no name
 * leads out of it, and what is said is to be believed by nobody who could be harmed by it. */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent.h"

#define UNKNOWN 3 /* exit code: whoever asked asks git instead */
#define REF "ref: "

static bool read_line(int directory, const char *name, char line[1024]) {
  struct open_how how = {
    .flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
    .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV,
  };
  int fd = (int)syscall(SYS_openat2, directory, name, &how, sizeof how);
  struct stat stat;
  ssize_t length = fd >= 0 && fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) ? read(fd, line, 1023) : -1;
  if (fd >= 0) close(fd);
  if (length < 2 || line[length - 1] != '\n') return false;
  line[length - 1] = 0;
  return !strchr(line, '\n');
}

int tell_head(int argc, char **argv) {
  char head[1024], commit[1024];
  int directory = argc == 1 ? open(argv[0], O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
  if (directory < 0) return 125;
  if (!read_line(directory, "HEAD", head)) return UNKNOWN;
  bool is_ref = strncmp(head, REF, strlen(REF)) == 0;
  if (is_ref && !read_line(directory, head + strlen(REF), commit)) return UNKNOWN;
  return puts(is_ref ? commit : head) >= 0 && fflush(stdout) == 0 ? 0 : 125;
}
