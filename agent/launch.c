/* Between the manager and bubblewrap: no foreign descriptor, the control groups, and, for a root manager, another user and the
 * host's directories attached so that this user owns what the tree's owner owns. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent.h"

/* After <linux/mount.h>, which clashes with <sys/mount.h>. */
int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data);
#ifndef MOUNT_ATTR_IDMAP
#define MOUNT_ATTR_IDMAP 0x00100000
#endif
enum { NEW_PRIVATE = 1 << 18, RECURSIVE = 16384, NO_SUID = 2, NO_DEV = 4 };

static void die(const char *what, const char *which) {
  dprintf(2, "glovebox: %s %s: %s\n", what, which, strerror(errno));
  _exit(125);
}

static void write_file(const char *path, const char *text) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0) die("cannot write", path);
  close(fd);
}

/* A user namespace that is nothing but the mapping from the tree's owner to the sandbox's user. */
static int open_mapping(const struct stat *owner, unsigned uid, unsigned gid) {
  int ready[2];
  if (pipe2(ready, O_CLOEXEC) != 0) die("cannot make", "a pipe");
  pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWUSER) != 0) _exit(1);
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* after unshare, which clears it */
    if (write(ready[1], "r", 1) != 1) _exit(1);
    for (;;) pause();
  }
  close(ready[1]);
  char byte, path[64], text[64];
  if (child < 0 || read(ready[0], &byte, 1) != 1) die("cannot make", "a user namespace");
  close(ready[0]);
  snprintf(path, sizeof path, "/proc/%d/uid_map", child);
  snprintf(text, sizeof text, "%u %u 1", (unsigned)owner->st_uid, uid);
  write_file(path, text);
  snprintf(path, sizeof path, "/proc/%d/gid_map", child);
  snprintf(text, sizeof text, "%u %u 1", (unsigned)owner->st_gid, gid);
  write_file(path, text);
  snprintf(path, sizeof path, "/proc/%d/ns/user", child);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) die("cannot open", path);
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  return fd;
}

static int clone_tree(const char *source, bool owned, unsigned uid, unsigned gid) {
  unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | (owned ? 0 : AT_RECURSIVE);
  int tree = (int)syscall(SYS_open_tree, AT_FDCWD, source, flags);
  if (tree < 0) die("cannot attach", source);
  if (!owned) return tree;
  struct stat owner;
  if (fstat(tree, &owner) != 0) die("cannot describe", source);
  int mapping = open_mapping(&owner, uid, gid);
  struct mount_attr attributes = {.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .userns_fd = (uint64_t)mapping};
  if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0)
    die("this file system cannot be attached for another user:", source);
  close(mapping);
  return tree;
}

static void stage_trees(char **sources, int count, const char *stage, unsigned uid, unsigned gid) {
  if (unshare(CLONE_NEWNS) != 0) die("cannot make", "a mount namespace");
  if (mount(NULL, "/", NULL, NEW_PRIVATE | RECURSIVE, NULL) != 0) die("cannot make private", "/");
  int *trees = calloc((size_t)count + 1, sizeof *trees);
  if (!trees) die("no memory for", "mounts");
  for (int i = 0; i < count; i++) trees[i] = clone_tree(sources[i] + 1, sources[i][0] == 'o', uid, gid);
  if (mount("tmpfs", stage, "tmpfs", NO_SUID | NO_DEV, "mode=0755") != 0) die("cannot mount", stage);
  for (int i = 0; i < count; i++) {
    struct stat stat;
    char at[4096];
    snprintf(at, sizeof at, "%s/%d", stage, i);
    if (fstat(trees[i], &stat) != 0) die("cannot describe", sources[i] + 1);
    int made = S_ISDIR(stat.st_mode) ? mkdir(at, 0755) : mknod(at, S_IFREG | 0644, 0);
    if (made != 0 || syscall(SYS_move_mount, trees[i], "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) != 0) die("cannot attach", sources[i] + 1);
    close(trees[i]);
  }
  free(trees);
}

/* launch [--cgroup DIR]... [--user UID GID STAGE] [--tree o|pSOURCE]... -- PROGRAM ARGUMENTS...
 * Descriptors 0 to 3 are handed on, all others closed. Tree n appears at STAGE/n, `o` owned by the user, `p` plain. */
int launch(int argc, char **argv) {
  char *sources[256];
  int count = 0, i = 0;
  unsigned uid = 0, gid = 0;
  const char *stage = NULL;
  close_from(4);
  for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
    if (strcmp(argv[i], "--cgroup") == 0 && i + 1 < argc) {
      char path[4096];
      snprintf(path, sizeof path, "%s/cgroup.procs", argv[++i]);
      write_file(path, "0");
    } else if (strcmp(argv[i], "--user") == 0 && i + 3 < argc) {
      uid = (unsigned)strtoul(argv[i + 1], NULL, 10);
      gid = (unsigned)strtoul(argv[i + 2], NULL, 10);
      stage = argv[i += 3];
    } else if (strcmp(argv[i], "--tree") == 0 && i + 1 < argc && count < 256) {
      sources[count++] = argv[++i];
    } else {
      errno = EINVAL;
      die("unknown argument", argv[i]);
    }
  }
  if (i + 1 >= argc) return 125;
  if (stage) {
    if (uid == 0 || gid == 0) return 125; /* never the host's root */
    stage_trees(sources, count, stage, uid, gid);
    if (setgroups(0, NULL) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0) die("cannot become", "the sandbox's user");
  }
  /* No memory image of a crash, neither in the tree nor piped to a program of the host: 1 is the limit that stops both. */
  struct rlimit no_core = {1, 1};
  if (setrlimit(RLIMIT_CORE, &no_core) != 0) die("cannot limit", "memory images");
  execv(argv[i + 1], argv + i + 1);
  die("cannot run", argv[i + 1]);
  return 125;
}
