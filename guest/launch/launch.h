/* Shared by the two files of the launcher. */
#ifndef GLOVEBOX_LAUNCH_H
#define GLOVEBOX_LAUNCH_H
#include <stdbool.h>

/* One part of a sandbox's root. */
struct root_part {
  enum { PART_TREE, PART_OVERLAY, PART_TMPFS, PART_LINK } kind;
  bool owned;         /* the tree is remapped: the sandbox's user has what its owner has */
  bool writable;
  const char *source; /* of an overlay: the lower directory; of a tmpfs: its size; of a link: its target */
  const char *state;  /* of an overlay: the directory with `upper` and `work`; of a tmpfs: its mode */
  const char *target; /* its path in the sandbox */
  int fd, state_fd;
};

void die(const char *what, const char *which);
void write_file(const char *path, const char *text);
/* Makes SCRATCH/root from the parts, in their order. */
void build_root(struct root_part *parts, int count, const char *scratch, unsigned uid, unsigned gid);
#endif
