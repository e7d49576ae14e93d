/* The archive format shared by tar-out.c and tar-in.c: ustar, with pax records where a name or a size does not fit. */
#ifndef GLOVEBOX_TAR_H
#define GLOVEBOX_TAR_H
#include <stdint.h>

#define BLOCK 512u

struct tar_header {
  char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6], version[2];
  char user[32], group[32], major[8], minor[8], prefix[155], padding[12];
};
_Static_assert(sizeof(struct tar_header) == BLOCK, "a header is one block");

/* Exit codes of tar_in and tar_out besides errno values. */
enum { TAR_ESCAPES = 200, TAR_NOT_REGULAR = 201, TAR_TOO_LARGE = 202, TAR_BROKEN = 203 };
#endif
