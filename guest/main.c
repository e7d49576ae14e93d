/* The program in every sandbox. One static file; its first argument selects what it does. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guest.h"

/* As PID 1 of a container. The channel is its stdin and stdout, which no command ever gets. */
static int serve_in_container(const char *user, const char *root, bool only_loopback) {
  int in = fcntl(0, F_DUPFD_CLOEXEC, 3), out = fcntl(1, F_DUPFD_CLOEXEC, 3), empty = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (only_loopback) write_hosts_file();
  int error = enter_container(user);
  if (error == -ENOENT) dprintf(2, "glovebox: the image has no user %s\n", user);
  else if (error) dprintf(2, "glovebox: cannot set capabilities: %s\n", strerror(-error));
  if (error) return 125;
  if (!make_directories(root)) dprintf(2, "glovebox: %s: %s\n", root, strerror(errno));
  for (int fd = 0; fd <= 2; fd++) dup2(empty, fd);
  close(empty);
  jailed = true;
  return serve(in, out, root, true, only_loopback);
}

/* As PID 1 of a container without capabilities, reached by connections that may break. A warm one waits for whoever comes first, who also says
 * whether it is kept. `again`: this program with the same arguments. */
static int serve_linked(int64_t lease, bool kept, bool warm, const char *root, char **again) {
  char start[4096];
  /* Where the image's own commands start. The host gets our environment, and only the container's engine knows it otherwise. */
  if (getcwd(start, sizeof start)) setenv("PWD", start, 1);
  int empty = open("/dev/null", O_RDWR | O_CLOEXEC), error = enter_container(NULL);
  if (error) dprintf(2, "glovebox: the container must not have the capabilities SETUID and SETGID\n");
  else if (!make_directories(root)) dprintf(2, "glovebox: %s: %s\n", root, strerror(errno));
  if (!error && (error = link_open(lease, kept, warm)) != 0) dprintf(2, "glovebox: the channel cannot be opened: %s\n", strerror(-error));
  if (error) return 125;
  for (int fd = 0; fd <= 1; fd++) dup2(empty, fd);
  jailed = true;
  int code = serve(-1, -1, root, true, false);
  if (code) dprintf(2, "glovebox: %s cannot be used\n", root);
  if (code || !link_is_kept()) return code;
  /* The files stay, and nothing else: whoever comes next is the first again. */
  for (char **word = again; *word; word++)
    if (strcmp(*word, "--warm") == 0) *word = "--kept";
  kill_descendants();
  if (waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD) execv("/proc/self/exe", again);
  return 125;
}

/* Set here and not before bubblewrap starts: in its own user namespace the kernel counts only the sandbox's processes. */
static bool limit_processes(const char *text) {
  struct rlimit limit;
  rlim_t wanted = strtoul(text, NULL, 10);
  if (getrlimit(RLIMIT_NPROC, &limit) != 0) return false;
  if (limit.rlim_max > wanted) limit.rlim_max = wanted;
  limit.rlim_cur = limit.rlim_max;
  process_limit = (int64_t)limit.rlim_max;
  return setrlimit(RLIMIT_NPROC, &limit) == 0;
}

/* serve [--in FD] [--out FD] [--jailed] [--loopback-only] [--commands-are-root] [--own-machine] [--processes COUNT] [--contained USER] ROOT
 * serve --linked LEASE [--kept|--warm] ROOT
 * Kept containers start the program with these words, so they must not change. */
static int serve_main(int argc, char **argv) {
  int in = 3, out = 3;
  bool only_loopback = false;
  const char *user = NULL;
  int64_t lease = 0;
  bool kept = false, warm = false;
  for (int i = 0; i < argc; i++) {
    if (strcmp(argv[i], "--in") == 0 && i + 1 < argc) in = atoi(argv[++i]);
    else if (strcmp(argv[i], "--out") == 0 && i + 1 < argc) out = atoi(argv[++i]);
    else if (strcmp(argv[i], "--jailed") == 0) jailed = true;
    else if (strcmp(argv[i], "--loopback-only") == 0) only_loopback = true;
    else if (strcmp(argv[i], "--commands-are-root") == 0) commands_are_root = true;
    else if (strcmp(argv[i], "--own-machine") == 0) own_machine = true;
    else if (strcmp(argv[i], "--kept") == 0) kept = true;
    else if (strcmp(argv[i], "--warm") == 0) warm = true;
    else if (strcmp(argv[i], "--linked") == 0 && i + 1 < argc) lease = (int64_t)1000 * atoi(argv[++i]);
    else if (strcmp(argv[i], "--processes") == 0 && i + 1 < argc) {
      if (!limit_processes(argv[++i])) return 125;
    } else if (strcmp(argv[i], "--contained") == 0 && i + 1 < argc) user = argv[++i];
    else if (i == argc - 1) {
      confinement = jailed ? CONFINE_NAMESPACE : CONFINE_SUBREAPER;
      if (lease > 0) return serve_linked(lease, kept, warm, argv[i], argv - 2);
      if (user) return serve_in_container(user, argv[i], only_loopback);
      if (!hide_outer_proc()) return 125;
      return serve(in, out, argv[i], jailed, only_loopback);
    }
  }
  return 125;
}

static const char *transfer_verbs[] = {"place", "put", "fetch", "pack", "unpack", NULL};

int main(int argc, char **argv) {
  reserve_standard_descriptors();
  const char *verb = argc > 1 ? argv[1] : "";
  if (strcmp(verb, "serve") == 0) return serve_main(argc - 2, argv + 2);
  if (strcmp(verb, "launch") == 0) return launch_main(argc - 2, argv + 2);
  if (strcmp(verb, "starter") == 0) return starter_main(argc - 2, argv + 2);
  if (strcmp(verb, "open-low-ports") == 0) return open_low_ports_main(argc - 2, argv + 2);
  if (strcmp(verb, "run") == 0) return run_once_main(argc - 2, argv + 2);
  if (strcmp(verb, "dial") == 0) return dial_main(argc - 2, argv + 2);
  if (strcmp(verb, "compare-overlay") == 0) return compare_overlay_main(argc - 2, argv + 2);
  if (strcmp(verb, "compare-index") == 0) return compare_index_main(argc - 2, argv + 2);
  if (strcmp(verb, "gather-changes") == 0) return gather_changes_main(argc - 2, argv + 2);
  if (strcmp(verb, "replicate") == 0) return replicate_main(argc - 2, argv + 2);
  if (strcmp(verb, "git-head") == 0) return git_head_main(argc - 2, argv + 2);
  if (strcmp(verb, "exec-with-parent") == 0) return exec_with_parent_main(argc - 2, argv + 2);
  if (strcmp(verb, "socket-owner") == 0) return socket_owner_main();
  if (strcmp(verb, "canary") == 0) return canary_main(argc - 2, argv + 2);
  if (strcmp(verb, "relay") == 0) return relay_main(argc - 2, argv + 2);
  if (strcmp(verb, "serve-files") == 0) return serve_files_main();
  if (strcmp(verb, "serve-text") == 0 && argc == 3) return serve_text_main(argv[2]);
  for (const char **known = transfer_verbs; *known; known++)
    if (strcmp(verb, *known) == 0) return transfer_file_main(verb, argc - 2, argv + 2);
  fprintf(stderr, "usage: glovebox-guest serve|serve-text|dial|relay|run|launch|exec-with-parent|place|fetch|pack|unpack|replicate|compare-index|"
                  "compare-overlay|gather-changes|git-head|socket-owner|open-low-ports|starter|canary ...\n");
  return 125;
}
