/* Between the manager and bubblewrap: no foreign descriptor, the control groups, and, for a root manager, another user and the
 * host's directories attached so that this user owns what the tree's owner owns. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/mount.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
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
  /* Mostly all have one owner, and a mapping serves any number of trees. */
  static int mapping = -1;
  static struct stat mapped;
  if (mapping < 0 || mapped.st_uid != owner.st_uid || mapped.st_gid != owner.st_gid) {
    if (mapping >= 0) close(mapping);
    mapping = open_mapping(&owner, uid, gid);
    mapped = owner;
  }
  struct mount_attr attributes = {.attr_set = MOUNT_ATTR_IDMAP | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, .userns_fd = (uint64_t)mapping};
  if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0)
    die("this file system cannot be attached for another user:", source);
  return tree;
}

/* One thing that is collected behind the stage. */
struct tree {
  char kind;          /* `o`wned by the user, `p`lain, or an overlay, `v` to be written, `r` to be read */
  const char *source; /* of an overlay: what lies below */
  const char *state;  /* of an overlay: the directory that holds `upper` and `work` */
  int fd, state_fd;
};

static void enter_private_mounts(void) {
  if (unshare(CLONE_NEWNS) != 0) die("cannot make", "a mount namespace");
  if (mount(NULL, "/", NULL, NEW_PRIVATE | RECURSIVE, NULL) != 0) die("cannot make private", "/");
}

/* A user namespace in which nothing is another user's, only to be allowed to mount. */
static void enter_own_user_namespace(void) {
  unsigned uid = getuid(), gid = getgid();
  char text[64];
  if (unshare(CLONE_NEWUSER) != 0) die("cannot make", "a user namespace");
  write_file("/proc/self/setgroups", "deny");
  snprintf(text, sizeof text, "%u %u 1", uid, uid);
  write_file("/proc/self/uid_map", text);
  snprintf(text, sizeof text, "%u %u 1", gid, gid);
  write_file("/proc/self/gid_map", text);
}

static void attach(int tree, const char *at, const char *source) {
  struct stat stat;
  if (fstat(tree, &stat) != 0) die("cannot describe", source);
  int made = S_ISDIR(stat.st_mode) ? mkdir(at, 0755) : mknod(at, S_IFREG | 0644, 0);
  if (made != 0 || syscall(SYS_move_mount, tree, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH) != 0) die("cannot attach", source);
  close(tree);
}

/* The upper layer's owner is mapped like every other tree's, so the layers are attached first and joined then. */
static void attach_overlay(const struct tree *tree, const char *at, unsigned uid, unsigned gid) {
  bool as_root = uid != 0;
  char lower[64], state[64], options[512];
  snprintf(lower, sizeof lower, "%s.l", at);
  snprintf(state, sizeof state, "%s.s", at);
  attach(tree->fd, lower, tree->source);
  attach(tree->state_fd, state, tree->state);
  /* Only root may let a renamed directory lead back to where it was; without, such a rename fails with EXDEV. */
  const char *how = as_root ? "redirect_dir=on,index=off,metacopy=off" : "userxattr";
  if (tree->kind == 'v') snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s/upper,workdir=%s/work,%s", lower, state, state, how);
  else snprintf(options, sizeof options, "lowerdir=%s/upper:%s%s", state, lower, as_root ? "" : ",userxattr");
  if (mkdir(at, 0755) != 0) die("cannot make", at);
  /* The kernel writes to the upper layer as whoever mounts, and the host's root does not exist in a layer that is the user's. */
  if (as_root && prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) != 0) die("cannot keep", "capabilities");
  if (as_root) setfsgid(gid), setfsuid(uid);
  if (mount("overlay", at, "overlay", NO_SUID | NO_DEV, options) != 0) die("cannot lay over", tree->source);
  if (as_root) setfsuid(0), setfsgid(0);
  if (as_root && prctl(PR_SET_SECUREBITS, 0, 0, 0, 0) != 0) die("cannot drop", "capabilities");
}

static void stage_trees(struct tree *trees, int count, const char *stage, unsigned uid, unsigned gid) {
  if (uid == 0) enter_own_user_namespace();
  enter_private_mounts();
  for (int i = 0; i < count; i++) {
    bool owned = uid != 0 && trees[i].kind != 'p';
    trees[i].fd = clone_tree(trees[i].source, owned, uid, gid);
    if (trees[i].state) trees[i].state_fd = clone_tree(trees[i].state, owned, uid, gid);
  }
  if (mount("tmpfs", stage, "tmpfs", NO_SUID | NO_DEV, "mode=0755") != 0) die("cannot mount", stage);
  for (int i = 0; i < count; i++) {
    char at[48];
    snprintf(at, sizeof at, "%.32s/%d", stage, i);
    if (trees[i].state) attach_overlay(&trees[i], at, uid, gid);
    else attach(trees[i].fd, at, trees[i].source);
  }
}

/* launch [--status] [--cgroup DIR]... [--user UID GID] [--stage DIR] [--tree o|pSOURCE | --overlay v|rLOWER STATE]... -- PROGRAM ARGUMENTS...
 * Descriptors 0 to 3 are handed on, with --status 4 too, all others closed. Tree n appears at DIR/n. */
int launch(int argc, char **argv) {
  static struct tree trees[256];
  int count = 0, i = 0;
  unsigned uid = 0, gid = 0;
  const char *stage = NULL;
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
    } else if (strcmp(argv[i], "--stage") == 0 && i + 1 < argc) {
      stage = argv[++i];
    } else if (strcmp(argv[i], "--tree") == 0 && i + 1 < argc && count < 256) {
      i++;
      trees[count++] = (struct tree){.kind = argv[i][0], .source = argv[i] + 1};
    } else if (strcmp(argv[i], "--overlay") == 0 && i + 2 < argc && count < 256) {
      i += 2;
      trees[count++] = (struct tree){.kind = argv[i - 1][0], .source = argv[i - 1] + 1, .state = argv[i]};
    } else {
      errno = EINVAL;
      die("unknown argument", argv[i]);
    }
  }
  if (i + 1 >= argc) return 125;
  if (uid != 0 && !stage) return 125;
  if (stage) stage_trees(trees, count, stage, uid, gid);
  if (uid != 0 && (setgroups(0, NULL) != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0))
    die("cannot become", "the sandbox's user");
  /* No memory image of a crash, neither in the tree nor piped to a program of the host: 1 is the limit that stops both. */
  struct rlimit no_core = {1, 1};
  if (setrlimit(RLIMIT_CORE, &no_core) != 0) die("cannot limit", "memory images");
  execv(argv[i + 1], argv + i + 1);
  die("cannot run", argv[i + 1]);
  return 125;
}
