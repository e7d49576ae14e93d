/* Runs between the manager and bubblewrap: closes foreign descriptors, joins the control groups, builds the sandbox's root where
 * bubblewrap cannot, and leaves root for another user. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../guest.h"
#include "launch.h"

#define MAX_PARTS 512

void die(const char *what, const char *which) {
  dprintf(2, "glovebox: %s %s: %s\n", what, which, strerror(errno));
  _exit(125);
}

void write_file(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) die("cannot write", path);
  close(fd);
}

/* How many arguments the part takes, with its name; 0 when it is no part. */
static int parse_part(int argc, char **argv, struct root_part *part) {
  const char *name = argv[0];
  if (strcmp(name, "--tree") == 0 && argc > 3) {
    *part = (struct root_part){PART_TREE, .owned = strchr(argv[1], 'o'), .writable = strchr(argv[1], 'w'), .source = argv[2], .target = argv[3]};
    return 4;
  }
  if (strcmp(name, "--overlay") == 0 && argc > 4) {
    *part = (struct root_part){PART_OVERLAY, .owned = true, .writable = strchr(argv[1], 'w'), .source = argv[2], .state = argv[3], .target = argv[4]};
    return 5;
  }
  if (strcmp(name, "--tmpfs") == 0 && argc > 3) {
    *part = (struct root_part){PART_TMPFS, .source = argv[1], .state = argv[2], .target = argv[3]};
    return 4;
  }
  if (strcmp(name, "--link") == 0 && argc > 2) {
    *part = (struct root_part){PART_LINK, .source = argv[1], .target = argv[2]};
    return 3;
  }
  return 0;
}

/* launch [--status] [--cgroup DIR]... [--user UID GID] [--build-root DIR PART...] -- PROGRAM ARGUMENTS...
 * Descriptors 0 to 3 stay open, with --status 4 as well; all others are closed. A PART is one of
 * --tree [o]r|w SOURCE PATH, --overlay r|w LOWER STATE PATH, --tmpfs SIZE MODE PATH, --link TARGET PATH. Together they make the
 * root DIR/root. */
int launch_main(int argc, char **argv) {
  static struct root_part parts[MAX_PARTS];
  int count = 0, i = 0, taken;
  unsigned uid = 0, gid = 0;
  const char *scratch = NULL;
  bool has_status = argc > 0 && strcmp(argv[0], "--status") == 0;
  close_from(has_status ? 5 : 4);
  for (i = has_status; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (strcmp(argv[i], "--cgroup") == 0 && i + 1 < argc) {
      char path[4096];
      snprintf(path, sizeof path, "%s/cgroup.procs", argv[++i]);
      write_file(path, "0");
    } else if (strcmp(argv[i], "--user") == 0 && i + 2 < argc) {
      uid = (unsigned)strtoul(argv[++i], NULL, 10);
      gid = (unsigned)strtoul(argv[++i], NULL, 10);
      if (uid == 0 || gid == 0) return 125; /* never the host's root */
    } else if (strcmp(argv[i], "--build-root") == 0 && i + 1 < argc) {
      scratch = argv[++i];
    } else if (scratch && count < MAX_PARTS && (taken = parse_part(argc - i, argv + i, &parts[count])) > 0) {
      count++;
      i += taken - 1;
    } else {
      errno = EINVAL;
      die("unknown argument", argv[i]);
    }
  }
  if (i + 1 >= argc) return 125;
  if (uid != 0 && !scratch) return 125;
  if (scratch) build_root(parts, count, scratch, uid, gid);
  if (uid != 0 && (setgroups(0, NULL) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0))
    die("cannot become", "the sandbox's user");
  /* No core dumps, neither in the tree nor piped to a program of the host. A limit of 1 stops both; 0 would not stop the pipe. */
  struct rlimit no_core = {1, 1};
  if (setrlimit(RLIMIT_CORE, &no_core) != 0) die("cannot limit", "memory images");
  execv(argv[i + 1], argv + i + 1);
  die("cannot run", argv[i + 1]);
  return 125;
}
