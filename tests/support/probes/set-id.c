/* Tries every way to a file that runs as its owner, or to a device, in the current directory. Says what each one made. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

static void say(const char *way, const char *name, long answer) {
  int error = errno;
  struct stat stat;
  if (answer < 0) printf("%s: %s\n", way, strerrorname_np(error));
  else if (lstat(name, &stat) != 0) printf("%s: nothing there\n", way);
  else printf("%s: %o\n", way, stat.st_mode & 07000);
}

static const char *fresh(const char *name) {
  int fd = openat(AT_FDCWD, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0755);
  if (fd >= 0) close(fd);
  return name;
}

static int opened(const char *name) { return openat(AT_FDCWD, fresh(name), O_RDWR | O_CLOEXEC, 0); }

int main(void) {
  umask(0);
#if defined(__x86_64__)
  say("chmod", "a", syscall(SYS_chmod, fresh("a"), 04755));
  say("chmod group", "b", syscall(SYS_chmod, fresh("b"), 02755));
  say("open", "c", syscall(SYS_open, "c", O_CREAT | O_WRONLY, 04755));
  say("creat", "d", syscall(SYS_creat, "d", 06755));
  say("mknod", "e", syscall(SYS_mknod, "e", S_IFREG | 04755, 0));
  say("mkdir", "f", syscall(SYS_mkdir, "f", 06755));
#endif
  say("fchmod", "g", syscall(SYS_fchmod, opened("g"), 04755));
  say("fchmodat", "h", syscall(SYS_fchmodat, AT_FDCWD, fresh("h"), 04755));
  say("fchmodat2", "i", syscall(452, AT_FDCWD, fresh("i"), 04755, 0));
  say("openat", "j", syscall(SYS_openat, AT_FDCWD, "j", O_CREAT | O_WRONLY, 04755));
  unsigned long how[3] = {O_CREAT | O_WRONLY, 04755, 0};
  say("openat2", "k", syscall(437, AT_FDCWD, "k", how, sizeof how));
  say("mknodat", "l", syscall(SYS_mknodat, AT_FDCWD, "l", S_IFREG | 06755, 0));
  long unnamed = syscall(SYS_openat, AT_FDCWD, ".", O_TMPFILE | O_RDWR, 04755);
  say("O_TMPFILE", "m", unnamed < 0 ? -1 : syscall(SYS_linkat, (int)unnamed, "", AT_FDCWD, "m", AT_EMPTY_PATH));
  say("high bits", "n", syscall(SYS_fchmodat, AT_FDCWD, fresh("n"), 0x100000000L | 04755));
  int end = socket(AF_UNIX, SOCK_STREAM, 0);
  struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = "o"};
  if (syscall(SYS_fchmod, end, 06755) != 0 || bind(end, (struct sockaddr *)&name, sizeof name) != 0) say("socket", "o", -1);
  else say("socket", "o", 0);
  unsigned capability[5] = {0x02000001, ~0u, 0, ~0u, 0};
  say("capability", "p", setxattr(fresh("p"), "security.capability", capability, sizeof capability, 0));
  say("device", "q", syscall(SYS_mknodat, AT_FDCWD, "q", S_IFBLK | 0666, makedev(8, 0)));
  say("character device", "r", syscall(SYS_mknodat, AT_FDCWD, "r", S_IFCHR | 0666, makedev(1, 1)));
  say("plain", "s", syscall(SYS_fchmodat, AT_FDCWD, fresh("s"), 0755));
  return 0;
}
