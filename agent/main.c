/* The program inside every sandbox. One static file: the launcher, the resident agent, the one-shot runner, and what reads a layer. */
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

int main(int argc, char **argv) {
  hold_standard_descriptors();
  const char *verb = argc > 1 ? argv[1] : "";
  if (strcmp(verb, "serve") == 0) return serve_with(argc - 2, argv + 2);
  if (strcmp(verb, "launch") == 0) return launch(argc - 2, argv + 2);
  if (strcmp(verb, "run") == 0) return run_once(argc - 2, argv + 2);
  if (strcmp(verb, "layer") == 0) return list_layer(argc - 2, argv + 2);
  fprintf(stderr, "usage: glovebox-agent serve|launch|run|layer ...\n");
  return 125;
}
