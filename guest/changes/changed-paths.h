/* A list of paths, each ended by a zero byte, that one of the looks at a tree makes for whoever started it. */
#ifndef GLOVEBOX_TOLD_H
#define GLOVEBOX_TOLD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define UNKNOWN 3 /* exit code: whoever asked looks at everything instead */

/* What the kernel says of each name in a directory. */
struct directory_record {
  uint64_t inode;
  int64_t offset;
  unsigned short size;
  unsigned char type;
  char name[];
};

extern char told[1 << 24];
extern size_t told_length;
extern long told_left;

_Noreturn void give_up(void);
/* Adds a path; gives up when there are too many. */
void tell(const char *path, size_t length);
bool write_all(int fd, const char *data, size_t size);

/* compare.c, layer.c: each fills the list, and gives a descriptor of the tree that it is about; gives up on what gather cannot tell when `wary`. */
int compare(int argc, char **argv, bool wary);
int layer(int argc, char **argv);
#endif
