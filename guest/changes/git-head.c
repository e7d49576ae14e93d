/* git-head GIT-DIRECTORY: prints the commit that is checked out, if two plain files say so. The directory is hostile: no link is
 * followed and no name leads out of it. The caller must not trust the answer. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../guest.h"
#include "changed-paths.h"

#define REF "ref: "

/* Name by name: commands in a sandbox have no openat2. */
static int open_beneath(int directory, const char *name) {
  int parent = fcntl(directory, F_DUPFD_CLOEXEC, 3);
  for (const char *slash; parent >= 0 && (slash = strchr(name, '/')); name = slash + 1) {
    char part[256];
    size_t length = (size_t)(slash - name);
    bool is_plain = length > 0 && length < sizeof part && name[0] != '.';
    memcpy(part, name, is_plain ? length : 0);
    part[is_plain ? length : 0] = 0;
    int next = is_plain ? openat(parent, part, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    close(parent);
    parent = next;
  }
  bool is_plain = parent >= 0 && name[0] != '.' && name[0] != 0;
  int fd = is_plain ? openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC) : -1;
  if (parent >= 0) close(parent);
  return fd;
}

static bool read_line(int directory, const char *name, char line[1024]) {
  int fd = open_beneath(directory, name);
  struct stat stat;
  ssize_t length = fd >= 0 && fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) ? read(fd, line, 1023) : -1;
  if (fd >= 0) close(fd);
  if (length < 2 || line[length - 1] != '\n') return false;
  line[length - 1] = 0;
  return !strchr(line, '\n');
}

bool read_git_head(const char *git, char head[1024], char commit[1024]) {
  int directory = open(git, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  bool is_read = directory >= 0 && read_line(directory, "HEAD", head);
  bool is_ref = is_read && strncmp(head, REF, strlen(REF)) == 0;
  if (is_ref) is_read = read_line(directory, head + strlen(REF), commit);
  else if (is_read) memcpy(commit, head, 1024);
  if (directory >= 0) close(directory);
  return is_read;
}

int git_head_main(int argc, char **argv) {
  char head[1024], commit[1024];
  if (argc != 1) return 125;
  if (!read_git_head(argv[0], head, commit)) return EXIT_NEEDS_GIT;
  return puts(commit) >= 0 && fflush(stdout) == 0 ? 0 : 125;
}
