/* In a container, where there are no namespaces to use: users and capabilities. */
#ifndef GLOVEBOX_CONTAINED_H
#define GLOVEBOX_CONTAINED_H
#include <stdbool.h>
#include <stdint.h>

#include "identity.h"

struct command;

extern bool in_container;
/* The user of commands that name none, and of files made through the guest. */
extern struct identity default_identity;

/* From here on files belong to the default user. The guest may still read and write those of others. 0 or a negative errno. Without a user, the
 * container's own is the only one there is: the guest has no rights that commands lack. */
int enter_container(const char *user);
bool make_directories(const char *path);
/* Adds the loopback names if /etc/hosts is empty, because the engine did not write it. A file of the image is not changed. */
void write_hosts_file(void);
/* Makes programs ask this address for names. */
void write_resolver_file(uint32_t address);
/* In the process that becomes a command: changes the user, and drops all capabilities unless they are to be kept. */
int become_identity(const struct identity *identity, bool keep_capabilities);
/* In a supervisor: becomes a user that no command has. Once its command runs, it keeps the capability to kill, and, where another
 * command follows, those to become that command's user in its directory. */
void become_supervisor_user(void);
void keep_kill_capability(void);
void keep_start_capabilities(void);
/* Whether a command could signal supervisors all the same. */
bool can_signal_supervisors(const struct command *command);
/* A command may open its streams by name (`/dev/stderr`), so they must belong to its user. */
void chown_streams(const int *fds, int count, const struct identity *identity);
#endif
