/* Inside a container, where there are no namespaces to be had: users, and what the agent keeps for itself. */
#ifndef GLOVEBOX_CONTAINED_H
#define GLOVEBOX_CONTAINED_H
#include <stdbool.h>
#include <stdint.h>

#include "identity.h"

struct command;

extern bool in_container;
/* Who commands run as unless they say otherwise, and whose the files are that are made through the agent. */
extern struct identity default_identity;

/* From here on files belong to the default user; the agent may still read and write those of others. 0 or a negative errno. */
int enter_container(const char *user);
bool make_directories(const char *path);
/* Where no engine writes the file, names of the loopback are known all the same. What an image brings is left as it is. */
void write_hosts_file(void);
/* In the process that becomes a command: the user, then, unless they are to be kept, no capabilities. */
int become_identity(const struct identity *identity, bool keep_capabilities);
/* In a supervisor: a user that no command has; and, once its command runs, no right but that to end processes of others, or,
 * where another command follows, to become its user in its directory. */
void become_supervisor_user(void);
void keep_kill_capability(void);
void keep_start_capabilities(void);
/* Whether a command could signal supervisors in spite of that. */
bool can_signal_supervisors(const struct command *command);
/* The command may open its streams by name (`/dev/stderr`), which are whoever's that made them. */
void chown_streams(const int *fds, int count, const struct identity *identity);
#endif
