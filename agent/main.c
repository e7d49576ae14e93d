/* The program inside every sandbox. One static file: the launcher, the resident agent, the one-shot runner. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent.h"

/* serve [--in FD] [--out FD] [--jailed] [--loopback-only] ROOT */
static int serve_with(int argc, char **argv) {
  int in = 3, out = 3;
  bool only_loopback = false;
  for (int i = 0; i < argc; i++) {
    if (strcmp(argv[i], "--in") == 0 && i + 1 < argc) in = atoi(argv[++i]);
    else if (strcmp(argv[i], "--out") == 0 && i + 1 < argc) out = atoi(argv[++i]);
    else if (strcmp(argv[i], "--jailed") == 0) jailed = true;
    else if (strcmp(argv[i], "--loopback-only") == 0) only_loopback = true;
    else if (i == argc - 1) {
      confinement = jailed ? CONFINE_NAMESPACE : CONFINE_SUBREAPER;
      return serve(in, out, argv[i], jailed, only_loopback);
    }
  }
  return 125;
}

static const char *staged_verbs[] = {"place", "fetch", "pack", "unpack", NULL};

int main(int argc, char **argv) {
  hold_standard_descriptors();
  const char *verb = argc > 1 ? argv[1] : "";
  if (strcmp(verb, "serve") == 0) return serve_with(argc - 2, argv + 2);
  if (strcmp(verb, "launch") == 0) return launch(argc - 2, argv + 2);
  if (strcmp(verb, "run") == 0) return run_once(argc - 2, argv + 2);
  if (strcmp(verb, "armour") == 0 && argc == 3) return armour(argv[2]);
  for (const char **known = staged_verbs; *known; known++)
    if (strcmp(verb, *known) == 0) return staged(verb, argc - 2, argv + 2);
  fprintf(stderr, "usage: glovebox-agent serve|launch|run|armour ...\n");
  return 125;
}
