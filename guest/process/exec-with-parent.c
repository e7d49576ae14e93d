/* exec-with-parent PARENT SIGNAL PROGRAM ARGUMENT...: runs a program, unless the process that asked for it has ended by now. The
 * program gets the signal, if it is not 0, when that process ends. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "../guest.h"

int exec_with_parent_main(int argc, char **argv) {
  if (argc < 3) return 125;
  int number = atoi(argv[1]);
  /* First, so that no end is missed between the two. */
  if (number && prctl(PR_SET_PDEATHSIG, number) != 0) return 125;
  if (getppid() != atoi(argv[0])) return 125;
  execv(argv[2], argv + 2);
  dprintf(2, "%s: %s\n", argv[2], strerror(errno));
  return errno == ENOENT ? 127 : 126;
}
