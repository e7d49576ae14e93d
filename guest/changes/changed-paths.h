/* The list of paths that differ in a tree, each ended by a zero byte. compare-index.c and compare-overlay.c fill it. */
#ifndef GLOVEBOX_TOLD_H
#define GLOVEBOX_TOLD_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXIT_NEEDS_GIT 3 /* exit code: this cannot be decided here, git has to look at everything */

/* A directory entry as getdents64 returns it. */
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
/* Adds a path; exits with EXIT_NEEDS_GIT when there are too many. */
void add_changed_path(const char *path, size_t length);
bool write_all(int fd, const char *data, size_t size);

/* Each fills the list and returns a descriptor of the tree. With `refuse_nested_git`, a repository below the tree needs git, too. */
int compare_index(int argc, char **argv, bool refuse_nested_git);
int compare_overlay(int argc, char **argv);
#endif
