/* Builds the sandbox's whole root before bubblewrap starts, so that bubblewrap binds one thing only. For each thing that it
 * binds, it reads the list of all mounts, which would take most of the start. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <linux/openat2.h>
#include <linux/securebits.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"

/* After <linux/mount.h>, which clashes with <sys/mount.h>. */
int mount(const char *source, const char *target, const char *type, unsigned long flags, const void *data);
#ifndef MOUNT_ATTR_IDMAP
#define MOUNT_ATTR_IDMAP 0x00100000
#endif
enum { NEW_PRIVATE = 1 << 18, RECURSIVE = 16384, READ_ONLY = 1, NO_SUID = 2, NO_DEV = 4, NO_EXEC = 8 };

static const char *const devices[] = {"null", "zero", "full", "random", "urandom", "tty"};
enum { DEVICES = sizeof devices / sizeof *devices };

static unsigned user, group; /* the sandbox's user when the manager is root; else 0 */
static int root;             /* the sandbox's root */

/* A user namespace that only maps the tree's owner to the sandbox's user. */
static int open_id_mapping(const struct stat *owner) {
  int alive[2];
  if (pipe2(alive, O_CLOEXEC) != 0) die("cannot make", "a pipe");
  pid_t child = (pid_t)syscall(SYS_clone, CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0);
  if (child == 0) {
    char none;
    close(alive[1]);
    _exit(read(alive[0], &none, 1) == 0 ? 0 : 1); /* until the mapping is not needed any more, or the parent is gone */
  }
  if (child < 0) die("cannot make", "a user namespace");
  char path[64], text[64];
  snprintf(path, sizeof path, "/proc/%d/uid_map", child);
  snprintf(text, sizeof text, "%u %u 1", (unsigned)owner->st_uid, user);
  write_file(path, text);
  snprintf(path, sizeof path, "/proc/%d/gid_map", child);
  snprintf(text, sizeof text, "%u %u 1", (unsigned)owner->st_gid, group);
  write_file(path, text);
  snprintf(path, sizeof path, "/proc/%d/ns/user", child);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) die("cannot open", path);
  close(alive[0]);
  close(alive[1]);
  return fd;
}

/* Most trees have the same owner, and one mapping serves any number of trees. */
static int mapping_for(const struct stat *owner) {
  static int mapping = -1;
  static struct stat mapped;
  if (mapping < 0 || mapped.st_uid != owner->st_uid || mapped.st_gid != owner->st_gid) {
    if (mapping >= 0) close(mapping);
    mapping = open_id_mapping(owner);
    mapped = *owner;
  }
  return mapping;
}

static void set_attributes(int tree, unsigned flags, uint64_t attributes, int mapping, const char *source) {
  struct mount_attr wanted = {.attr_set = attributes | (mapping < 0 ? 0 : MOUNT_ATTR_IDMAP), .userns_fd = mapping < 0 ? 0 : (uint64_t)mapping};
  if (syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH | flags, &wanted, sizeof wanted) != 0)
    die(mapping < 0 ? "cannot protect" : "this file system cannot be attached for another user:", source);
}

/* Only the tree's own file system can be remapped to another user. The sandbox's own trees may lie where others can write, so a
 * link in their place is refused. */
static int clone_tree(const char *source, bool owned, uint64_t attributes) {
  bool is_remapped = owned && user != 0;
  unsigned depth = is_remapped ? 0 : AT_RECURSIVE;
  int tree = (int)syscall(SYS_open_tree, AT_FDCWD, source, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | depth | (owned ? AT_SYMLINK_NOFOLLOW : 0));
  struct stat found;
  if (tree < 0 || fstat(tree, &found) != 0) die("cannot attach", source);
  if (S_ISLNK(found.st_mode)) {
    errno = ELOOP;
    die("cannot attach", source);
  }
  set_attributes(tree, depth, attributes, is_remapped ? mapping_for(&found) : -1, source);
  return tree;
}

static void clone_trees(struct root_part *parts, int count, int nodes[DEVICES]) {
  for (int i = 0; i < count; i++) {
    struct root_part *part = &parts[i];
    bool is_layered = part->kind == PART_OVERLAY;
    if (!is_layered && part->kind != PART_TREE) continue;
    uint64_t attributes = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (part->writable || is_layered ? 0 : MOUNT_ATTR_RDONLY);
    part->fd = clone_tree(part->source, part->owned, attributes);
    if (is_layered) part->state_fd = clone_tree(part->state, true, attributes);
  }
  for (int i = 0; i < DEVICES; i++) {
    char path[32];
    snprintf(path, sizeof path, "/dev/%s", devices[i]);
    nodes[i] = clone_tree(path, false, MOUNT_ATTR_NOSUID);
  }
}

static void enter_private_mounts(void) {
  if (unshare(CLONE_NEWNS) != 0) die("cannot make", "a mount namespace");
  if (mount(NULL, "/", NULL, NEW_PRIVATE | RECURSIVE, NULL) != 0) die("cannot make private", "/");
}

/* A user namespace that maps our user to itself, only to be allowed to mount. */
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

/* From here on files are made by the sandbox's user, without root's rights; or by root again. */
static void act_as(unsigned uid, unsigned gid) {
  if (user == 0) return;
  setfsgid(gid);
  setfsuid(uid);
}

/* Links cannot lead out of the root. */
static int open_in_root(const char *path) {
  struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
  return (int)syscall(SYS_openat2, root, path, &how, sizeof how);
}

/* Opens the parent directory of a path, made if it is missing, and finds the last name. */
static int open_target(const char *path, bool is_directory);
static int open_parent(const char *path, const char **name) {
  char above[4096];
  const char *slash = strrchr(path, '/');
  *name = slash + 1;
  snprintf(above, sizeof above, "%.*s", (int)(slash - path), path);
  return open_target(slash == path ? "/" : above, true);
}

/* Opens a mount point, made if it is missing. */
static int open_target(const char *path, bool is_directory) {
  int fd = open_in_root(path);
  if (fd >= 0) return fd;
  const char *name;
  if (errno != ENOENT || path[0] != '/' || !path[1]) die("cannot open", path);
  int above = open_parent(path, &name);
  int made = is_directory ? mkdirat(above, name, 0755) : mknodat(above, name, S_IFREG | 0444, 0);
  if (made != 0) die("cannot make", path);
  close(above);
  fd = open_in_root(path);
  if (fd < 0) die("cannot open", path);
  return fd;
}

static void attach(int tree, int at, const char *name, const char *source) {
  if (syscall(SYS_move_mount, tree, "", at, name, MOVE_MOUNT_F_EMPTY_PATH | (*name ? 0 : MOVE_MOUNT_T_EMPTY_PATH)) != 0) die("cannot attach", source);
  close(tree);
}

static void mount_on(int at, const char *type, unsigned long flags, const char *options, const char *what) {
  char path[32];
  snprintf(path, sizeof path, "/proc/self/fd/%d", at);
  if (mount(type, path, type, flags, options) != 0) die("cannot mount", what);
}

/* The upper layer's owner is mapped like that of every other tree, so the layers are attached beside the root first, and joined
 * after that. */
static void attach_overlay(const struct root_part *part, int number, const char *scratch) {
  char lower[64], state[64], options[512];
  snprintf(lower, sizeof lower, "%.32s/%d.l", scratch, number);
  snprintf(state, sizeof state, "%.32s/%d.s", scratch, number);
  if (mkdir(lower, 0755) != 0 || mkdir(state, 0755) != 0) die("cannot make", lower);
  attach(part->fd, AT_FDCWD, lower, part->source);
  attach(part->state_fd, AT_FDCWD, state, part->state);
  /* Only root may use redirects for renamed directories. Without them such a rename fails with EXDEV. */
  const char *how = user != 0 ? "redirect_dir=on,index=off,metacopy=off" : "userxattr";
  if (part->writable) snprintf(options, sizeof options, "lowerdir=%s,upperdir=%s/upper,workdir=%s/work,%s", lower, state, state, how);
  else snprintf(options, sizeof options, "lowerdir=%s/upper:%s%s", state, lower, user != 0 ? "" : ",userxattr");
  int at = open_target(part->target, true);
  /* The kernel writes to the upper layer as the user who mounts, with all capabilities; the host's root is not mapped in a layer
   * of the user's. */
  act_as(0, 0);
  if (user != 0 && prctl(PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0) != 0) die("cannot keep", "capabilities");
  act_as(user, group);
  mount_on(at, "overlay", NO_SUID | NO_DEV | (part->writable ? 0 : READ_ONLY), options, part->source);
  act_as(0, 0);
  if (user != 0 && prctl(PR_SET_SECUREBITS, 0, 0, 0, 0) != 0) die("cannot drop", "capabilities");
  act_as(user, group);
  close(at);
}

static void make_devices(int nodes[DEVICES]) {
  static const char *const links[][2] = {{"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"},
                                         {"/proc/self/fd", "fd"}, {"pts/ptmx", "ptmx"}};
  int under = open_target("/dev", true);
  mount_on(under, "tmpfs", NO_SUID | NO_DEV, "mode=0755", "/dev");
  int dev = open_in_root("/dev");
  for (int i = 0; i < DEVICES; i++) {
    if (mknodat(dev, devices[i], S_IFREG | 0444, 0) != 0) die("cannot make", devices[i]);
    attach(nodes[i], dev, devices[i], devices[i]);
  }
  for (size_t i = 0; i < sizeof links / sizeof *links; i++)
    if (symlinkat(links[i][0], dev, links[i][1]) != 0) die("cannot make", links[i][1]);
  if (mkdirat(dev, "shm", 0755) != 0) die("cannot make", "/dev/shm");
  int terminals = open_target("/dev/pts", true);
  mount_on(terminals, "devpts", NO_SUID | NO_EXEC, "newinstance,ptmxmode=0666,mode=620", "/dev/pts");
  set_attributes(dev, 0, MOUNT_ATTR_RDONLY, -1, "/dev");
  close(terminals);
  close(dev);
  close(under);
}

static void add_part(const struct root_part *part, int number, const char *scratch) {
  if (part->kind == PART_OVERLAY) {
    attach_overlay(part, number, scratch);
  } else if (part->kind == PART_TREE) {
    struct stat found;
    if (fstat(part->fd, &found) != 0) die("cannot describe", part->source);
    int at = open_target(part->target, S_ISDIR(found.st_mode));
    attach(part->fd, at, "", part->source);
    close(at);
  } else if (part->kind == PART_TMPFS) {
    char options[96];
    snprintf(options, sizeof options, "size=%.24s,mode=%.8s", part->source, part->state);
    int at = open_target(part->target, true);
    mount_on(at, "tmpfs", NO_SUID | NO_DEV, options, part->target);
    close(at);
  } else {
    const char *name;
    int above = open_parent(part->target, &name);
    if (symlinkat(part->source, above, name) != 0) die("cannot make", part->target);
    close(above);
  }
}

void build_root(struct root_part *parts, int count, const char *scratch, unsigned uid, unsigned gid) {
  int nodes[DEVICES];
  char path[48];
  user = uid;
  group = gid;
  if (user == 0) enter_own_user_namespace();
  enter_private_mounts();
  clone_trees(parts, count, nodes); /* before the scratch mount hides any of them */
  mode_t mask = umask(0);
  act_as(user, group);
  if (mount("tmpfs", scratch, "tmpfs", NO_SUID | NO_DEV, "mode=0755") != 0) die("cannot mount", scratch);
  snprintf(path, sizeof path, "%.32s/root", scratch);
  if (mkdir(path, 0755) != 0 || mount("tmpfs", path, "tmpfs", NO_SUID | NO_DEV, "mode=0755") != 0) die("cannot mount", path);
  root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (root < 0) die("cannot open", path);
  if (mkdirat(root, "proc", 0755) != 0) die("cannot make", "/proc");
  make_devices(nodes);
  for (int i = 0; i < count; i++) add_part(&parts[i], i, scratch);
  set_attributes(root, 0, MOUNT_ATTR_RDONLY, -1, "/");
  act_as(0, 0);
  umask(mask);
  close(root);
  /* The processes behind the mappings have had time to exit. Bubblewrap must not find a child that is not its own. */
  while (waitpid(-1, NULL, 0) > 0) continue;
}
