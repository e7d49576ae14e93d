/* The user that a command in a container runs as. */
#ifndef GLOVEBOX_IDENTITY_H
#define GLOVEBOX_IDENTITY_H
#include <stdbool.h>
#include <sys/types.h>

#define MAX_GROUPS 64
#define MAX_HOME 256

struct identity {
  uid_t uid;
  gid_t gid;
  gid_t groups[MAX_GROUPS];
  int group_count;
  char home[MAX_HOME];
};

/* `text` is a name or a number, optionally with a colon and a group, looked up in the container's files. False: there is no such
 * user. */
bool find_identity(const char *text, struct identity *out);
#endif
