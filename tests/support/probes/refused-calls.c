/* Tries what no command may do and says for each what the kernel answered. The wrong arguments are meant: they show
 * whether it was the filter that spoke, or something behind it. */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char *name, long answer) {
  printf("%s %s\n", name, answer >= 0 ? "done" : strerrorname_np(errno));
  fflush(stdout);
}

#define TRY(name, ...) say(name, syscall(__VA_ARGS__))

/* A call that would go on in a child when it is not refused. */
static void try_clone(const char *name, unsigned long flags) {
  long pid = syscall(SYS_clone, flags | SIGCHLD, 0, 0, 0, 0);
  if (pid == 0) _exit(0);
  say(name, pid);
  if (pid > 0) waitpid((pid_t)pid, NULL, 0);
}

#if defined(__x86_64__)
static void try_old_entry(void) {
  pid_t pid = fork();
  if (pid == 0) {
    long number = 20;
    __asm__ volatile("int $0x80" : "+a"(number) : : "memory", "r8", "r9", "r10", "r11");
    _exit(0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  printf("int80 %s\n", WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "done");
  TRY("x32", 0x40000000L | SYS_getpid);
}
#endif

int main(void) {
  char nowhere[] = "/nowhere";
  void *bad = (void *)8;
  TRY("mount", SYS_mount, "tmpfs", "/tmp", "tmpfs", 0, 0);
  TRY("mount:bad", SYS_mount, bad, bad, bad, 0, 0);
  TRY("remount", SYS_mount, 0, "/usr", 0, 0x1020, 0);
  TRY("umount", SYS_umount2, "/proc", 2);
  TRY("umount:bad", SYS_umount2, "/proc", 0xffff);
  TRY("pivot_root", SYS_pivot_root, ".", ".");
  TRY("chroot:bad", SYS_chroot, nowhere);
  TRY("open_tree:bad", 428, -100, nowhere, 0);
  TRY("move_mount:bad", 429, -1, "", -1, "", 0xffff);
  TRY("fsopen:bad", 430, "tmpfs", 0xffff);
  TRY("fsconfig:bad", 431, -1, 0, 0, 0, 0);
  TRY("fsmount:bad", 432, -1, 0xffff, 0);
  TRY("fspick:bad", 433, -100, nowhere, 0xffff);
  TRY("mount_setattr:bad", 442, -1, nowhere, 0xffff, bad, 1);
  TRY("unshare user", SYS_unshare, CLONE_NEWUSER);
  TRY("unshare mount", SYS_unshare, CLONE_NEWNS);
  TRY("unshare:bad", SYS_unshare, 0);
  TRY("setns:bad", SYS_setns, -1, 0);
  try_clone("clone user", CLONE_NEWUSER);
  try_clone("clone net", CLONE_NEWNET);
  TRY("clone3:bad", 435, 0, 0);
  TRY("ptrace", SYS_ptrace, 0, 0, 0, 0);
  TRY("process_vm_readv", SYS_process_vm_readv, getpid(), 0, 0, 0, 0, 0);
  TRY("process_vm_writev", SYS_process_vm_writev, getpid(), 0, 0, 0, 0, 0);
  TRY("kcmp", SYS_kcmp, getpid(), getpid(), 1, 0, 0);
  TRY("io_uring_setup:bad", 425, 0, bad);
  TRY("io_uring_enter:bad", 426, -1, 0, 0, 0, 0, 0);
  TRY("io_uring_register:bad", 427, -1, 0, 0, 0);
  TRY("bpf:bad", SYS_bpf, 0xffff, bad, 0xfffff);
  TRY("perf_event_open:bad", SYS_perf_event_open, bad, 0, -1, -1, 0);
  TRY("userfaultfd:bad", SYS_userfaultfd, 0xff);
  TRY("fanotify_init:bad", SYS_fanotify_init, 0xffffffff, 0);
  TRY("keyctl", SYS_keyctl, 0, -4, 0);
  TRY("add_key:bad", SYS_add_key, bad, bad, bad, 0, 0);
  TRY("request_key:bad", SYS_request_key, bad, bad, bad, 0);
  TRY("open_by_handle_at:bad", SYS_open_by_handle_at, -1, bad, 0);
  TRY("quotactl:bad", SYS_quotactl, 0x7fffffff, 0, 0, 0);
  TRY("syslog:bad", SYS_syslog, -1, 0, 0);
  TRY("reboot:bad", SYS_reboot, 0, 0, 0, 0);
  TRY("init_module:bad", SYS_init_module, bad, 0, bad);
  TRY("settimeofday:bad", SYS_settimeofday, bad, 0);
  TRY("clock_settime:bad", SYS_clock_settime, 99, bad);
  TRY("openat2:bad", 437, -1, 0, 0, 0);
  TRY("TIOCSTI", SYS_ioctl, 0, TIOCSTI, "x");
  TRY("TIOCSTI:bad", SYS_ioctl, -1, TIOCSTI, "x");
  TRY("socket packet", SYS_socket, AF_PACKET, SOCK_RAW, 0);
  TRY("socket vsock", SYS_socket, AF_VSOCK, SOCK_STREAM, 0);
  TRY("socket alg", SYS_socket, AF_ALG, SOCK_SEQPACKET, 0);
  TRY("socket bluetooth", SYS_socket, AF_BLUETOOTH, SOCK_RAW, 0);
  TRY("socket raw", SYS_socket, AF_INET, SOCK_RAW, 1);
  TRY("socket raw6", SYS_socket, AF_INET6, SOCK_RAW, 58);
  TRY("kill 1", SYS_kill, 1, SIGKILL);
#if defined(__x86_64__)
  try_old_entry();
#endif
  return 0;
}
