/* What the two parts of the launcher know of each other. */
#ifndef GLOVEBOX_LAUNCH_H
#define GLOVEBOX_LAUNCH_H
#include <stdbool.h>

/* One thing that the root of a sandbox is made of. */
struct step {
  enum { STEP_TREE, STEP_OVERLAY, STEP_TMPFS, STEP_LINK } kind;
  bool owned;         /* the sandbox's user has what the tree's owner has */
  bool writable;
  const char *source; /* of an overlay: what lies below; of a tmpfs: its size; of a link: where it leads */
  const char *state;  /* of an overlay: the directory that holds `upper` and `work`; of a tmpfs: its mode */
  const char *target; /* its path inside */
  int fd, state_fd;
};

void die(const char *what, const char *which);
void write_file(const char *path, const char *text);
/* Makes STAGE/root out of the steps, in their order. */
void build_root(struct step *steps, int count, const char *scratch, unsigned uid, unsigned gid);
#endif
