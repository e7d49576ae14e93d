/* A list of paths, each ended by a zero byte, that one of the looks at a tree makes for whoever started it. */
#ifndef GLOVEBOX_TOLD_H
#define GLOVEBOX_TOLD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXIT_NEEDS_GIT 3 /* exit code: whoever asked looks at everything instead */

/* What the kernel says of each name in a directory. */
struct directory_record {
  uint64_t inode;
  int64_t offset;
  unsigned short size;
  unsigned char type;
  char name[];
};

extern char changed_paths[1 << 24];
extern size_t changed_paths_length;
extern long changed_paths_left;

_Noreturn void exit_needs_git(void);
/* Adds a path; gives up when there are too many. */
void add_changed_path(const char *path, size_t length);
bool write_all(int fd, const char *data, size_t size);

/* compare.c, layer.c: each fills the list, and gives a descriptor of the tree that it is about; gives up on what gather cannot tell when `wary`. */
int compare_index(int argc, char **argv, bool refuse_nested_git);
int compare_overlay(int argc, char **argv);
#endif
