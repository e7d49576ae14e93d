#include "container.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../guest.h"

/* An arbitrary id. A command that runs as this user can only end what it has started itself. */
#define SUPERVISOR_ID 65432

bool in_container;
/* Without these capabilities every process here has the one user of the container. */
static bool can_change_user;
struct identity default_identity;

static int set_capabilities(uint32_t effective, uint32_t permitted) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[2] = {{.effective = effective, .permitted = permitted}};
  return syscall(SYS_capset, &header, sets) == 0 ? 0 : -errno;
}

static uint32_t permitted_capabilities(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct sets[2] = {{0}};
  return syscall(SYS_capget, &header, sets) == 0 ? sets[0].permitted : 0;
}

int enter_container(const char *user) {
  const uint32_t needed = 1u << CAP_SETUID | 1u << CAP_SETGID;
  char own[32];
  can_change_user = user != NULL;
  snprintf(own, sizeof own, "%u", (unsigned)getuid());
  if (!find_identity(user ? user : own, &default_identity)) return -ENOENT;
  in_container = true;
  if (!can_change_user) {
    default_identity.uid = getuid();
    default_identity.gid = getgid();
    /* With them, commands could become another user, whom the guest could not end. */
    return permitted_capabilities() & needed ? -EPERM : 0;
  }
  /* Changing the file system user clears the capabilities that override permissions. They are still permitted, so they can be set
   * again. */
  setfsgid(default_identity.gid);
  setfsuid(default_identity.uid);
  uint32_t permitted = permitted_capabilities();
  return set_capabilities(permitted, permitted);
}

bool make_directories(const char *path) {
  char part[4096];
  size_t length = strlen(path);
  if (length >= sizeof part) return false;
  for (size_t end = 1; end <= length; end++) {
    if (path[end] != '/' && path[end] != 0) continue;
    memcpy(part, path, end);
    part[end] = 0;
    if (mkdir(part, 0755) != 0 && errno != EEXIST) return false;
  }
  return true;
}

void write_hosts_file(void) {
  static const char names[] = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n";
  int fd = open("/etc/hosts", O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
  struct stat stat;
  if (fd < 0) return;
  bool empty = fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && stat.st_size == 0;
  if (empty && write(fd, names, sizeof names - 1) < 0) errno = 0;
  close(fd);
}

void write_resolver_file(uint32_t address) {
  static const char path[] = "/etc/resolv.conf";
  char text[64];
  int length = snprintf(text, sizeof text, "nameserver %u.%u.%u.%u\n", address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
  struct stat stat;
  /* A link would lead anywhere, a mount too. */
  if (lstat(path, &stat) == 0 && !S_ISREG(stat.st_mode) && unlink(path) != 0) return;
  int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0644);
  if (fd < 0) return;
  if (fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && fchmod(fd, 0644) == 0 && ftruncate(fd, 0) == 0 && write(fd, text, (size_t)length) < 0) errno = 0;
  close(fd);
}

int become_identity(const struct identity *identity, bool keep_capabilities) {
  if (!can_change_user) return drop_privileges();
  if (setgroups((size_t)identity->group_count, identity->groups) != 0) return -errno;
  if (setresgid(identity->gid, identity->gid, identity->gid) != 0) return -errno;
  if (setresuid(identity->uid, identity->uid, identity->uid) != 0) return -errno;
  return keep_capabilities && identity->uid == 0 ? 0 : drop_privileges();
}

void become_supervisor_user(void) {
  if (!can_change_user) return;
  uint32_t permitted = permitted_capabilities();
  prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
  if (setgroups(0, NULL) != 0 || setresgid(SUPERVISOR_ID, SUPERVISOR_ID, SUPERVISOR_ID) != 0 || setresuid(SUPERVISOR_ID, SUPERVISOR_ID, SUPERVISOR_ID) != 0 ||
      set_capabilities(permitted, permitted) != 0)
    _exit(125);
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
}

void keep_kill_capability(void) {
  if (!can_change_user) return;
  const uint32_t kill_others = 1u << CAP_KILL;
  if (set_capabilities(kill_others, kill_others) != 0) _exit(125);
}

void keep_start_capabilities(void) {
  const uint32_t kept = 1u << CAP_KILL | 1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_DAC_OVERRIDE;
  if (set_capabilities(kept, kept) != 0) _exit(125);
}

bool can_signal_supervisors(const struct command *command) {
  return command->as && (!can_change_user || !command->jailed || command->as->uid == SUPERVISOR_ID);
}

void chown_streams(const int *fds, int count, const struct identity *identity) {
  if (identity->uid == default_identity.uid) return;
  for (int i = 0; i < count; i++) {
    struct stat stat;
    /* Never /dev/null, which everybody shares. */
    bool own = fstat(fds[i], &stat) == 0 && (S_ISFIFO(stat.st_mode) || (isatty(fds[i]) && S_ISCHR(stat.st_mode)));
    if (own && fchown(fds[i], identity->uid, (gid_t)-1) != 0) continue;
  }
}
