/* What every jailed command loses before it starts: capabilities, ways to regain them, and dangerous system calls. */
#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../guest.h"

#ifndef SYS_openat2
#define SYS_openat2 437
#endif

int drop_privileges(void) {
  for (int capability = 0; capability <= 63; capability++)
    if (prctl(PR_CAPBSET_DROP, capability, 0, 0, 0) != 0) break; /* that was the last one, or we may not */
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct none[2] = {{0}};
  if (syscall(SYS_capset, &header, none) != 0) return -errno;
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return -errno;
  return 0;
}

/* Sockets without a path belong to the network namespace, which may be the host's. From here on processes reach only the abstract
 * sockets of their own (Landlock; not in kernels before 6.12). */
void isolate_abstract_sockets(void) {
  enum { CREATE_RULESET = 444, RESTRICT_SELF = 446, ABSTRACT_UNIX_SOCKETS = 1 };
  struct {
    uint64_t files, network, scoped;
  } rules = {.scoped = ABSTRACT_UNIX_SOCKETS};
  int ruleset = (int)syscall(CREATE_RULESET, &rules, sizeof rules, 0);
  if (ruleset < 0) return;
  syscall(RESTRICT_SELF, ruleset, 0);
  close(ruleset);
}

#if defined(__x86_64__)
#define FILTER_ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define FILTER_ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "no system call filter for this machine"
#endif

#define FIELD(name) ((uint32_t)offsetof(struct seccomp_data, name))
#define ARGUMENT(n) ((uint32_t)(offsetof(struct seccomp_data, args) + 8 * (n))) /* low half; little-endian */
#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (offset))
#define RETURN(value) BPF_STMT(BPF_RET | BPF_K, (value))
#define REFUSE(error) RETURN(SECCOMP_RET_ERRNO | (error))
#define JUMP_EQUAL(value, yes, no) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), (yes), (no))
#define JUMP_ANY_BIT(bits, yes, no) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (uint32_t)(bits), (yes), (no))

/* The number is in the accumulator before and after each of these. */
#define DENY(number, error) JUMP_EQUAL(number, 0, 1), REFUSE(error)
#define DENY_BITS(number, argument, bits, error) \
  JUMP_EQUAL(number, 0, 4), LOAD(ARGUMENT(argument)), JUMP_ANY_BIT(bits, 0, 1), REFUSE(error), LOAD(FIELD(nr))
#define DENY_VALUE(number, argument, value, error) \
  JUMP_EQUAL(number, 0, 4), LOAD(ARGUMENT(argument)), JUMP_EQUAL(value, 0, 1), REFUSE(error), LOAD(FIELD(nr))

#define NAMESPACES (0x7e020000u | 0x00000080u) /* all CLONE_NEW* flags, with that of the time namespace */
#define SETS_ID (S_ISUID | S_ISGID)
/* Numbers that are the same on all machines and missing in older headers. */
enum { OPEN_TREE = 428, MOVE_MOUNT, FSOPEN, FSCONFIG, FSMOUNT, FSPICK, PIDFD_OPEN, CLONE3, MOUNT_SETATTR = 442, FCHMODAT2 = 452,
       LISTMOUNT = 458, OPEN_TREE_ATTR = 467, IO_URING_SETUP = 425, IO_URING_ENTER, IO_URING_REGISTER };

int install_seccomp_filter(void) {
  static const struct sock_filter program[] = {
      LOAD(FIELD(arch)),
      JUMP_EQUAL(FILTER_ARCHITECTURE, 1, 0),
      RETURN(SECCOMP_RET_KILL_PROCESS),
      LOAD(FIELD(nr)),
#if defined(__x86_64__)
      /* The x32 calls are the same calls under other numbers. */
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000u, 0, 1),
      REFUSE(ENOSYS),
#endif
      /* Namespaces and mounts: no sandbox within the sandbox. clone3 hides its flags; libc falls back to clone. */
      DENY_BITS(SYS_clone, 0, NAMESPACES, EPERM),
      DENY(CLONE3, ENOSYS), DENY(SYS_unshare, EPERM), DENY(SYS_setns, EPERM),
      DENY(SYS_mount, EPERM), DENY(SYS_umount2, EPERM), DENY(SYS_pivot_root, EPERM), DENY(SYS_chroot, EPERM),
      DENY(OPEN_TREE, EPERM), DENY(MOVE_MOUNT, EPERM), DENY(FSOPEN, EPERM), DENY(FSCONFIG, EPERM), DENY(FSMOUNT, EPERM),
      DENY(FSPICK, EPERM), DENY(MOUNT_SETATTR, EPERM), DENY(OPEN_TREE_ATTR, EPERM),
      /* Other processes, and large, young parts of the kernel. */
      DENY(SYS_ptrace, EPERM), DENY(SYS_process_vm_readv, EPERM), DENY(SYS_process_vm_writev, EPERM), DENY(SYS_kcmp, EPERM),
      DENY(IO_URING_SETUP, ENOSYS), DENY(IO_URING_ENTER, ENOSYS), DENY(IO_URING_REGISTER, ENOSYS),
      DENY(SYS_bpf, EPERM), DENY(SYS_perf_event_open, EPERM), DENY(SYS_userfaultfd, EPERM), DENY(SYS_fanotify_init, EPERM),
      DENY(SYS_keyctl, EPERM), DENY(SYS_add_key, EPERM), DENY(SYS_request_key, EPERM),
      DENY(SYS_open_by_handle_at, EPERM), DENY(SYS_quotactl, EPERM), DENY(SYS_acct, EPERM), DENY(SYS_syslog, EPERM),
      DENY(SYS_init_module, EPERM), DENY(SYS_finit_module, EPERM), DENY(SYS_delete_module, EPERM),
      DENY(SYS_kexec_load, EPERM), DENY(SYS_reboot, EPERM), DENY(SYS_swapon, EPERM), DENY(SYS_swapoff, EPERM),
      DENY(SYS_settimeofday, EPERM), DENY(SYS_clock_settime, EPERM), DENY(SYS_adjtimex, EPERM), DENY(SYS_vhangup, EPERM),
#if defined(__x86_64__)
      DENY(SYS_iopl, EPERM), DENY(SYS_ioperm, EPERM), DENY(SYS_modify_ldt, EPERM),
      DENY_BITS(SYS_chmod, 1, SETS_ID, EPERM), DENY_BITS(SYS_creat, 1, SETS_ID, EPERM),
      DENY_BITS(SYS_open, 2, SETS_ID, EPERM), DENY_BITS(SYS_mknod, 1, SETS_ID, EPERM),
#endif
      /* Files keep their owner on the host, so a set-user-id file made here would run as that owner there. */
      DENY_BITS(SYS_fchmod, 1, SETS_ID, EPERM), DENY_BITS(SYS_fchmodat, 2, SETS_ID, EPERM), DENY(FCHMODAT2, ENOSYS),
      DENY_BITS(SYS_mknodat, 2, SETS_ID, EPERM), DENY_BITS(SYS_openat, 3, SETS_ID, EPERM), DENY(SYS_openat2, ENOSYS),
      /* Typing into a terminal for somebody else. */
      DENY_VALUE(SYS_ioctl, 1, TIOCSTI, EPERM), DENY_VALUE(SYS_ioctl, 1, TIOCLINUX, EPERM),
      /* Sockets: local, internet and routing only. A network namespace does not stop AF_VSOCK and the like. */
      JUMP_EQUAL(SYS_socket, 0, 7),
      LOAD(ARGUMENT(0)),
      JUMP_EQUAL(AF_UNIX, 4, 0), JUMP_EQUAL(AF_INET, 3, 0), JUMP_EQUAL(AF_INET6, 2, 0), JUMP_EQUAL(AF_NETLINK, 1, 0),
      REFUSE(EAFNOSUPPORT),
      LOAD(FIELD(nr)),
      RETURN(SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {.len = sizeof program / sizeof *program, .filter = (struct sock_filter *)(uintptr_t)program};
  return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0 ? 0 : -errno;
}
