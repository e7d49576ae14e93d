/* Runs as a command at the start of every confined sandbox: tries whether the confinement works instead of assuming it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../guest.h"

static bool expect_only_loopback;
void self_test_expects(bool only_loopback) { expect_only_loopback = only_loopback; }

static int fail_test(const char *what) {
  dprintf(1, "%s", what);
  return 1;
}

static bool can_write(const char *path) {
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

/* The first wanted line that /proc/self/status does not have, or null. */
static const char *find_wrong_status(void) {
  FILE *status = fopen("/proc/self/status", "re");
  if (!status) return "/proc/self/status";
  static const char *const wanted[] = {"CapInh:\t0000000000000000", "CapPrm:\t0000000000000000", "CapEff:\t0000000000000000",
                                       "CapAmb:\t0000000000000000", "NoNewPrivs:\t1", "Seccomp:\t2", "CapBnd:\t0000000000000000"};
  /* In a container we cannot empty the bounding set; without new privileges it gives nobody anything. */
  enum { ALL = sizeof wanted / sizeof *wanted };
  const int count = in_container ? ALL - 1 : ALL;
  bool seen[ALL] = {false};
  char line[256];
  while (fgets(line, sizeof line, status)) {
    line[strcspn(line, "\n")] = 0;
    for (int i = 0; i < count; i++)
      if (strcmp(line, wanted[i]) == 0) seen[i] = true;
  }
  fclose(status);
  for (int i = 0; i < count; i++)
    if (!seen[i]) return wanted[i];
  return NULL;
}

static bool only_loopback(void) {
  FILE *devices = fopen("/proc/net/dev", "re");
  if (!devices) return false;
  char line[512];
  bool alone = true;
  for (int number = 0; fgets(line, sizeof line, devices); number++)
    if (number >= 2 && strncmp(line + strspn(line, " "), "lo:", 3) != 0) alone = false;
  fclose(devices);
  return alone;
}

int self_test(void) {
  const char *status = find_wrong_status();
  if (status) {
    dprintf(1, "a command lacks %s", status);
    return 1;
  }
  if (!in_container && (getuid() == 0 || geteuid() == 0)) return fail_test("commands run as root");
  static const char *const kernel_files[] = {"/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/proc/sys/kernel/modprobe",
                                             "/proc/irq/default_smp_affinity"};
  for (size_t i = 0; i < sizeof kernel_files / sizeof *kernel_files; i++)
    if (can_write(kernel_files[i])) return fail_test("the kernel's settings in /proc are writable");
  struct stat outer;
  if (stat(OUTER_PROC "/self", &outer) == 0) return fail_test("processes of the host are visible");
  if (umount2("/proc", MNT_DETACH) == 0 || umount2("/tmp", MNT_DETACH) == 0) return fail_test("a mount can be removed");
  if (mount(NULL, "/usr", NULL, MS_REMOUNT | MS_BIND, NULL) == 0) return fail_test("a mount can be made writable");
  if (unshare(CLONE_NEWUSER) == 0) return fail_test("a user namespace can be made");
  /* A container may write to its own root. */
  if (!in_container && (mkdir("/glovebox-self-test", 0700) == 0 || mkdir("/usr/glovebox-self-test", 0700) == 0)) return fail_test("the root is writable");
  static const char *const sockets[] = {"/var/run/docker.sock", "/run/docker.sock", "/run/dbus/system_bus_socket",
                                        "/run/systemd/private", "/run/containerd/containerd.sock", "/run/podman/podman.sock"};
  for (size_t i = 0; i < sizeof sockets / sizeof *sockets; i++) {
    struct stat found;
    if (stat(sockets[i], &found) == 0) return fail_test("a host socket is visible");
  }
  if (socket(AF_VSOCK, SOCK_STREAM, 0) >= 0) return fail_test("a machine socket can be opened");
  if (confinement == CONFINE_NAMESPACE && getppid() != 1) return fail_test("a command is not in a PID namespace of its own");
  if (expect_only_loopback && !only_loopback()) return fail_test("there is more than the loopback device");
  return 0;
}
