/* Lets every user of a jail listen on ports below 1024. Bubblewrap leaves the user namespace that owns the jail's network, so nobody inside may
 * change that; whoever started it may. */
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../guest.h"
#include "launch.h"

/* The only child of bubblewrap is process 1 of the jail. */
static long only_child(const char *parent) {
  char path[64], text[64] = "", *end;
  snprintf(path, sizeof path, "/proc/%s/task/%s/children", parent, parent);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, text, sizeof text - 1) <= 0) die("cannot read", path);
  close(fd);
  long child = strtol(text, &end, 10);
  if (child <= 0 || strcmp(end, " ") != 0) {
    errno = ECHILD;
    die("there is not one process below", parent);
  }
  return child;
}

static int open_network(const char *process) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%s/ns/net", process);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) die("cannot open", path);
  return fd;
}

/* open-low-ports PID, which is a bubblewrap that we have started */
int open_low_ports_main(int argc, char **argv) {
  if (argc != 1 || strspn(argv[0], "0123456789") != strlen(argv[0]) || strlen(argv[0]) > 10) return 125;
  char child[32];
  snprintf(child, sizeof child, "%ld", only_child(argv[0]));
  int network = open_network(child);
  struct stat own, other;
  if (fstat(open_network("self"), &own) != 0 || fstat(network, &other) != 0) die("cannot look at", "a network");
  if (own.st_dev == other.st_dev && own.st_ino == other.st_ino) {
    errno = EPERM;
    die("the network is not the jail's own:", child);
  }
  if (setns(network, CLONE_NEWNET) != 0) {
    int owner = ioctl(network, NS_GET_USERNS);
    if (owner < 0 || setns(owner, CLONE_NEWUSER) != 0 || setns(network, CLONE_NEWNET) != 0) die("cannot join", "the network of the jail");
  }
  write_file("/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");
  return 0;
}
