/* Inside a container, where there are no namespaces to be had: users, and what the agent keeps for itself. */
#ifndef GLOVEBOX_CONTAINED_H
#define GLOVEBOX_CONTAINED_H
#include <stdbool.h>
#include <stdint.h>

#include "identity.h"

struct command;

extern bool contained;
/* Who commands run as unless they say otherwise, and whose the files are that are made through the agent. */
extern struct identity default_identity;

/* From here on files belong to the default user; the agent may still read and write those of others. 0 or a negative errno. */
int contain(const char *user);
bool make_root(const char *path);
/* Where no engine writes the file, names of the loopback are known all the same. What an image brings is left as it is. */
void name_loopback(void);
/* In the process that becomes a command: the user, then, unless they are to be kept, no capabilities. */
int become_identity(const struct identity *identity, bool keep_capabilities);
/* In a supervisor: a user that no command has; and, once its command runs, no right but that to end processes of others, or,
 * where another command follows, to become its user in its directory. */
void leave_reach_of_commands(void);
void keep_only_killing(void);
void keep_only_starting(void);
/* Whether a command could signal supervisors in spite of that. */
bool is_within_reach(const struct command *command);
/* The command may open its streams by name (`/dev/stderr`), which are whoever's that made them. */
void give_streams(const int *fds, int count, const struct identity *identity);

/* How many processes there can be in this container; negative when that cannot be known, or is not limited. */
int64_t process_limit(void);
/* How often the kernel ended a process of this container for want of memory; negative when that cannot be known. */
int64_t oom_kills(void);
#endif
