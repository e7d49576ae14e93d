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
#include "told.h"

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

bool read_head(const char *git, char head[1024], char commit[1024]) {
  int directory = open(git, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  bool is_read = directory >= 0 && read_line(directory, "HEAD", head);
  bool is_ref = is_read && strncmp(head, REF, strlen(REF)) == 0;
  if (is_ref) is_read = read_line(directory, head + strlen(REF), commit);
  else if (is_read) memcpy(commit, head, 1024);
  if (directory >= 0) close(directory);
  return is_read;
}

int tell_head(int argc, char **argv) {
  char head[1024], commit[1024];
  if (argc != 1) return 125;
  if (!read_head(argv[0], head, commit)) return UNKNOWN;
  return puts(commit) >= 0 && fflush(stdout) == 0 ? 0 : 125;
}
