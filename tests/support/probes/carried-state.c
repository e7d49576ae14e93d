/* "look" prints everything that a process could inherit. "change" changes all of it in this process, and "harm NAME" tries one change of
 * process 1, which the next command may inherit from, and prints what became of it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

struct scheduling {
  uint32_t size, policy;
  uint64_t flags;
  int32_t niceness;
  uint32_t priority;
  uint64_t runtime, deadline, period;
  uint32_t least, most;
};

enum { SCHED_RESETS_ON_FORK = 1, SCHED_KEEPS_ALL = 0x18, SCHED_CLAMPS = 0x60 };

static void print_file(const char *path) {
  char text[4096];
  FILE *file = fopen(path, "r");
  printf("%s:", path);
  if (!file) printf(" %s\n", strerror(errno));
  else {
    size_t length = fread(text, 1, sizeof text - 1, file);
    text[length] = 0;
    printf(" %s%s", text, length > 0 && text[length - 1] == '\n' ? "" : "\n");
    fclose(file);
  }
}

/* The lines of /proc/self/status that do not count memory or name this process. */
static void print_status(void) {
  static const char *shown[] = {"Umask", "TracerPid", "Uid", "Gid", "FDSize", "Groups", "Kthread", "Threads", "SigQ", "SigPnd", "ShdPnd", "SigBlk",
                                "SigIgn", "SigCgt", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp", "Seccomp_filters",
                                "Speculation_Store_Bypass", "SpeculationIndirectBranch", "VmLck", "VmPin", "CoreDumping", "THP_enabled",
                                "untag_mask", "Cpus_allowed", "Mems_allowed"};
  char line[1024];
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file))
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++)
      if (strncmp(line, shown[i], strlen(shown[i])) == 0 && line[strlen(shown[i])] == ':') fputs(line, stdout);
  if (file) fclose(file);
}

static void print_directory(const char *path, int numbers_only) {
  DIR *directory = opendir(path);
  printf("%s:", path);
  for (struct dirent *entry; directory && (entry = readdir(directory));) {
    if (entry->d_name[0] == '.' || (numbers_only && !strchr("0123456789", entry->d_name[0]))) continue;
    if (numbers_only && atoi(entry->d_name) == getpid()) printf(" self");
    else if (numbers_only || atoi(entry->d_name) != dirfd(directory)) printf(" %s", entry->d_name);
  }
  printf("\n");
  if (directory) closedir(directory);
}

static void look(void) {
  char place[4096];
  printf("pid %d\n", getpid());
  printf("cwd %s\n", getcwd(place, sizeof place) ? place : strerror(errno));
  for (char **at = environ; *at; at++) printf("env %s\n", *at);
  print_status();
  print_directory("/proc", 1);
  print_directory("/proc/self/fd", 0);
  for (int i = 0; i < RLIM_NLIMITS; i++) {
    struct rlimit limit;
    if (getrlimit(i, &limit) == 0) printf("limit %d %llu %llu\n", i, (unsigned long long)limit.rlim_cur, (unsigned long long)limit.rlim_max);
  }
  struct scheduling scheduling = {0};
  syscall(SYS_sched_getattr, 0, &scheduling, sizeof scheduling, 0);
  printf("scheduling %u %llu %d %u %u %u\n", scheduling.policy, (unsigned long long)scheduling.flags, scheduling.niceness, scheduling.priority,
         scheduling.least, scheduling.most);
  printf("io priority %ld\n", syscall(SYS_ioprio_get, 1, 0));
  printf("personality %d\n", personality(0xffffffff));
  int signal_of_parent = -1, subreaper = -1, policy = -1;
  prctl(PR_GET_PDEATHSIG, &signal_of_parent);
  prctl(PR_GET_CHILD_SUBREAPER, &subreaper);
  syscall(SYS_get_mempolicy, &policy, NULL, 0UL, NULL, 0UL);
  printf("prctl %d %d %d %d %d %d %d %d\n", signal_of_parent, subreaper, prctl(PR_GET_TIMERSLACK), prctl(PR_GET_DUMPABLE), prctl(PR_GET_KEEPCAPS),
         prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0), prctl(PR_MCE_KILL_GET, 0, 0, 0, 0), prctl(PR_GET_SECUREBITS));
  printf("memory policy %d\n", policy);
  for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++) {
    struct itimerval timer = {0};
    getitimer(which, &timer);
    printf("timer %d %ld %ld\n", which, (long)timer.it_value.tv_sec, (long)timer.it_interval.tv_sec);
  }
  int terminal = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
  printf("session %d group %d terminal %d\n", getsid(0) == getpid(), getpgrp() == getpid(), terminal >= 0);
  print_file("/proc/self/timers");
  print_file("/proc/self/oom_score_adj");
  print_file("/proc/self/coredump_filter");
  print_file("/proc/self/autogroup");
  print_file("/proc/self/cgroup");
  print_file("/proc/self/comm");
  int made = open("made-by-look", O_CREAT | O_RDWR | O_CLOEXEC, 0666);
  struct stat about = {0};
  fstat(made, &about);
  printf("file %o\n", about.st_mode);
  unlink("made-by-look");
}

static void must(const char *what, long result) {
  if (result >= 0) return;
  printf("%s: %s\n", what, strerror(errno));
  exit(1);
}

static void put(const char *path, const char *text) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  must(path, file);
  must(path, write(file, text, strlen(text)));
}

static void change(void) {
  for (int fd = 20; fd < 40; fd++) must("dup2", dup2(1, fd));
  setenv("CARRIED", "1", 1);
  must("chdir", chdir("/tmp"));
  umask(0077);
  must("setpriority", setpriority(PRIO_PROCESS, 0, 7));
  must("ioprio", syscall(SYS_ioprio_set, 1, 0, 3 << 13));
  struct scheduling idle = {.size = sizeof idle, .policy = SCHED_IDLE, .flags = SCHED_RESETS_ON_FORK};
  must("sched_setattr", syscall(SYS_sched_setattr, 0, &idle, 0));
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(0, &one);
  must("affinity", sched_setaffinity(0, sizeof one, &one));
  must("personality", personality(ADDR_NO_RANDOMIZE | UNAME26));
  must("slack", prctl(PR_SET_TIMERSLACK, 123456789UL));
  must("death signal", prctl(PR_SET_PDEATHSIG, SIGUSR1));
  must("subreaper", prctl(PR_SET_CHILD_SUBREAPER, 1));
  must("pages", prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0));
  must("machine checks", prctl(PR_MCE_KILL, PR_MCE_KILL_SET, PR_MCE_KILL_EARLY, 0, 0));
  must("name", prctl(PR_SET_NAME, "carried"));
  put("/proc/self/oom_score_adj", "900");
  put("/proc/self/coredump_filter", "0x1");
  must("dumpable", prctl(PR_SET_DUMPABLE, 0));
  struct itimerval long_timer = {.it_value = {.tv_sec = 5000}, .it_interval = {.tv_sec = 5000}};
  for (int which = ITIMER_REAL; which <= ITIMER_PROF; which++) must("setitimer", setitimer(which, &long_timer, NULL));
  timer_t timer;
  must("timer_create", timer_create(CLOCK_REALTIME, NULL, &timer));
  sigset_t all;
  sigfillset(&all);
  must("sigprocmask", sigprocmask(SIG_SETMASK, &all, NULL));
  for (int number = SIGRTMIN; number < SIGRTMIN + 8; number++) must("sigqueue", sigqueue(getpid(), number, (union sigval){.sival_int = 1}));
  must("kill", kill(getpid(), SIGUSR2));
  for (int number = 1; number < NSIG; number++) signal(number, SIG_IGN);
  for (int number = 0; number < RLIM_NLIMITS; number++) {
    struct rlimit limit;
    must("getrlimit", getrlimit(number, &limit));
    struct rlimit less = {.rlim_cur = 64, .rlim_max = 64};
    if (number == RLIMIT_NICE || number == RLIMIT_RTPRIO || number == RLIMIT_RTTIME || number == RLIMIT_CPU) less.rlim_cur = less.rlim_max = 0;
    if (number == RLIMIT_AS || number == RLIMIT_DATA || number == RLIMIT_STACK || number == RLIMIT_RSS) less.rlim_cur = less.rlim_max = 1UL << 30;
    if (number == RLIMIT_CPU) less.rlim_cur = less.rlim_max = 1000;
    if (less.rlim_max < limit.rlim_max) must("setrlimit", setrlimit(number, &less));
  }
  struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog filter = {.len = 1, .filter = &allow};
  must("seccomp", prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter));
  struct {
    uint64_t files;
  } rules = {.files = 1 << 8}; /* no regular file may be made; a kernel without Landlock has nothing to carry over */
  int ruleset = (int)syscall(444, &rules, sizeof rules, 0);
  if (ruleset >= 0) must("landlock", syscall(446, ruleset, 0));
  printf("changed\n");
}

/* Each of these returns what its call returned. */
static long harm(const char *what) {
  struct rlimit none = {.rlim_cur = 1, .rlim_max = 1};
  struct scheduling resets = {.size = sizeof resets, .flags = SCHED_KEEPS_ALL | SCHED_RESETS_ON_FORK};
  struct scheduling clamps = {.size = sizeof clamps, .flags = SCHED_KEEPS_ALL | SCHED_CLAMPS, .least = 0, .most = 100};
  if (strncmp(what, "limit-", 6) == 0) return prlimit(1, atoi(what + 6), &none, NULL);
  if (strcmp(what, "niceness-of-user") == 0) return setpriority(PRIO_USER, getuid(), 5);
  if (strcmp(what, "io-priority-of-user") == 0) return syscall(SYS_ioprio_set, 3, getuid(), 3 << 13);
  if (strcmp(what, "reset-on-fork") == 0) return syscall(SYS_sched_setattr, 1, &resets, 0);
  if (strcmp(what, "utilization") == 0) return syscall(SYS_sched_setattr, 1, &clamps, 0);
  if (strcmp(what, "signal") == 0) return kill(1, SIGUSR1);
  if (strcmp(what, "queued-signals") == 0) {
    for (int i = 0; i < 100; i++)
      if (sigqueue(1, SIGRTMIN + 3, (union sigval){.sival_int = i}) != 0) return -1;
    return 0;
  }
  if (strcmp(what, "group") == 0) return setpgid(1, getpid());
  if (what[0] == '/') {
    int file = open(what, O_WRONLY | O_CLOEXEC);
    return file < 0 ? -1 : write(file, "1", 1);
  }
  errno = EINVAL;
  return -1;
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "look") == 0) look();
  else if (argc == 2 && strcmp(argv[1], "change") == 0) change();
  else if (argc == 3 && strcmp(argv[1], "harm") == 0) printf("%s\n", harm(argv[2]) < 0 ? strerror(errno) : "done");
  else return 2;
  return 0;
}
