/* What the parts of the agent know of each other. */
#ifndef GLOVEBOX_GUEST_H
#define GLOVEBOX_GUEST_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <sys/types.h>

#include "process/container.h"
#include "channel/frame.h"

/* Each call has its own PID namespace, or, where that cannot be had, a subreaper of its own. */
enum confinement { CONFINE_NAMESPACE = 1, CONFINE_SUBREAPER = 2 };

/* One command as it was asked for; pointers lead into the request frame. */
struct command {
  char **argv, **env;
  int cwd;            /* directory, open */
  int in, out, err;   /* the command's ends; all the same with a terminal */
  bool terminal;
  bool jailed;        /* no capabilities, no new privileges, the system call filter */
  const struct identity *as; /* in a container: who it runs as */
  int (*builtin)(void); /* run instead of argv when set */
};

/* A started command: its supervisor, and the two pipes to it. */
struct supervisor {
  pid_t pid;
  int control; /* one byte a signal number, or one of CONTROL_* */
  int status;  /* one `struct ending` when the command itself has ended */
  int commands;  /* where it takes its next command from; -1 when it serves one only */
  bool control_used;   /* something was written to `control`, and may still be there */
};

struct ending {
  int32_t signaled;
  int32_t code;
  int32_t tree; /* nothing else that the command started is left: one of ALONE_* */
};
/* Something of the command is left; nothing is, and the supervisor ends; nothing is, and it takes another command. */
enum { TREE_RUNNING, TREE_GONE, TREE_GONE_REUSE };

enum { CONTROL_KILL_ALL = 0xff, CONTROL_FREEZE = 0xfe, CONTROL_THAW = 0xfd };
/* How a supervisor ends that never came to its command, unless it knows an errno for it. */
#define START_FAILED 125
/* Not the end of the command: it and all it started stand still, or, with a code, could not be made to. */
#define ENDING_FROZEN (-1)

/* spawn.c: 0 or a negative errno. */
int start_command(const struct command *command, enum confinement confinement, struct supervisor *out);
/* A supervisor without a command yet, for jailed ones. */
int start_pooled_supervisor(enum confinement confinement, struct supervisor *out);
void kill_supervised(const struct supervisor *supervisor, enum confinement confinement);

/* order.c: a command on its way to a supervisor in waiting, with stdin, stdout, stderr and the work directory. */
#define COMMAND_CWD 3 /* after the three streams */
#define COMMAND_DESCRIPTORS 4
bool fits_command_message(const struct command *command);
bool send_command(int socket, const struct command *command);
/* `as` is filled in where the command is to have an identity. */
bool receive_command(int socket, struct command *command, struct identity *as, int streams[COMMAND_DESCRIPTORS]);

/* spare.c: making a supervisor takes longer than the rest of a start, so they are made in advance, and kept. */
void pool_fill(void);
bool pool_start(const struct command *command, struct supervisor *out);
/* Takes a supervisor whose command has ended, and all that it started; false when it is of no more use. */
bool pool_return(const struct supervisor *supervisor);
bool pool_child_ended(pid_t pid);
bool is_pooled(pid_t pid);

/* layer.c, compare.c, gather.c, replicate.c, head.c, begin.c: each gives the exit code. */
int compare_overlay_main(int argc, char **argv);
int compare_index_main(int argc, char **argv);
int gather_changes_main(int argc, char **argv);
int replicate_main(int argc, char **argv);
int git_head_main(int argc, char **argv);
/* Which commit is checked out, and the line of HEAD, as far as plain files say so. */
bool read_git_head(const char *git, char head[1024], char commit[1024]);
int exec_with_parent_main(int argc, char **argv);

/* supervisor-state.c: what a command can change about its supervisor without its consent. */
void remember_supervisor_state(void);
bool is_supervisor_unchanged(void);

/* descendants.c: one round of SIGKILL to the direct children, and how many there were; then again and again until there are
 * none: the children of the dead become direct ones, as we are their reaper. */
extern bool own_machine; /* the whole machine is the sandbox: its commands may become root, and what they start is ended as root */
int kill_children(bool (*excluded)(pid_t pid));
void kill_descendants(void);

/* descriptors.c */
void close_from(unsigned first);
/* Puts `fds` at 0.. in order, whatever numbers they have now, and closes all others; false when that cannot be done. */
bool arrange_descriptors(const int *fds, int count);
/* So that no pipe or channel ever gets one of the three numbers that commands take for their streams. */
void reserve_standard_descriptors(void);
/* The agent needs more descriptors than the default limit gives; commands get the limit as it was. */
void raise_descriptor_limit(void);
void restore_descriptor_limit(void);

/* pipes.c: our ends of a call's streams; -1 where there is none. */
struct ends {
  int in, out, err;
};
int open_pipes(struct command *command, bool with_stdin, struct ends *ours);
int open_terminal(struct command *command, uint16_t cols, uint16_t rows, struct ends *ours);
void close_command_ends(const struct command *command);

/* cgroup.c */
/* How many processes there can be in this container; negative when that cannot be known, or is not limited. */
int64_t cgroup_process_limit(void);
/* How often the kernel ended a process of this container for want of memory; negative when that cannot be known. */
int64_t cgroup_oom_kills(void);

/* jail.c */
int drop_privileges(void);
void isolate_abstract_sockets(void);
int install_seccomp_filter(void);

/* selftest.c: runs as a command; exit code 0 when everything holds, else a line on stdout says what does not. */
int self_test(void);
void self_test_expects(bool only_loopback);

/* files.c: each answers by result or by a negative errno. */
#define ESCAPES 10001     /* the path leads outside the root */
#define NOT_REGULAR 10002 /* neither a regular file nor absent */
#define NO_USER 10003     /* nobody inside has this name */
int files_open_root(const char *path);
void files_use_root(int directory);
int files_open_directory(const char *path);
int files_open_read(const char *path, uint64_t *size);
int files_write(const char *path, uint32_t mode, const uint8_t *bytes, size_t length);
int files_stat(const char *path, uint8_t out[21]);
int files_list(const char *path, struct queue *out);
int files_remove(const char *path);
int files_rename(const char *from, const char *to);
int files_make_directory(const char *path);

/* A file that is being written; it appears under its name by files_commit only. */
struct pending_file {
  int fd, parent;
  uint32_t mode;
  char temporary[40], name[256];
};
int pending_create(const char *path, uint32_t mode, struct pending_file *out);
int pending_append(struct pending_file *file, const uint8_t *bytes, size_t length);
int pending_commit(struct pending_file *file);
void pending_discard(struct pending_file *file);
/* The parent directory of `path`, opened (and made when `make`), and the last name in it. */
int files_open_parent(const char *path, bool make, char name[256]);

/* Long file work, each in a process of its own; they return an errno as exit code. */
int remove_tree(int parent, const char *name);
int remove_contents(int directory);
int tar_out(int directory);
int tar_in(int root, uint64_t max_bytes);

/* calls.c, call-ends.c: what is under way. A call ends with ANS_EXIT, ANS_RESULT or ANS_FAIL, once. */
struct call;
struct call *call_find(uint32_t id);
struct call *call_new(uint32_t id);
int call_start(struct call *call, struct command *command, bool with_stdin, uint16_t cols, uint16_t rows, uint32_t deadline);
/* Long file work in a process of its own; what `work` returns is its exit code. */
int call_start_worker(struct call *call, int (*work)(int directory), int directory);
/* Of its outputs only so many bytes will be kept, head and tail; more than MAX_KEPT is asked for as all. */
#define MAX_KEPT (4u << 20)
#define KEEP_ALL UINT32_MAX
void call_keep_output(struct call *call, uint32_t out, uint32_t err);
void call_read_file(struct call *call, int fd);
void call_write_file(struct call *call, const struct pending_file *file);
void call_free(struct call *call);
/* False when more was sent than there was room for. */
bool call_stdin(struct call *call, const uint8_t *bytes, size_t length);
void call_stdin_end(struct call *call);
void call_signal(struct call *call, int number);
void call_credit(struct call *call, int stream, uint32_t bytes);
void call_resize(struct call *call, uint16_t cols, uint16_t rows);
size_t calls_poll(struct pollfd *fds, size_t room, int *timeout);
void calls_ready(const struct pollfd *fds, size_t count);
void calls_child_ended(pid_t pid, int status);
#define MAX_CALLS 512
#define POLLS_PER_CALL 4

/* listen.c */
extern int listener;
int listen_on(uint16_t port);
void accept_connections(void);

/* freeze.c: in the supervisor, then in the agent. */
bool freeze_namespace(void);
void thaw_namespace(void);
int freeze_all(uint32_t request);
int thaw_all(void);
void call_frozen(struct call *call, bool frozen);
void settle_freeze(void);

/* requests.c: false when the peer broke the protocol. */
bool handle_request(const struct frame *frame);

/* serve.c */
void answer(uint8_t type, uint32_t call, const void *body, size_t length);
void answer_fail(uint32_t call, int error, const char *message);
bool channel_is_full(void);
extern enum confinement confinement;
extern bool jailed;
int64_t now_ms(void);
int serve(int in, int out, const char *root, bool with_self_test, bool only_loopback);

/* launch.c, run-once.c, dial.c, relay.c, armour.c, staged.c */
int launch_main(int argc, char **argv);
int run_once_main(int argc, char **argv);
int dial_main(int argc, char **argv);
int relay_main(int argc, char **argv);
bool add_inherited_env(char ***env);
int serve_text_main(const char *root);
/* squeeze.c: gives the length of what it wrote; `to` has room for SQUEEZED(length). */
#define LZ4_BOUND(length) ((length) + (length) / 255 + 16)
size_t lz4_compress(const uint8_t *from, size_t length, uint8_t *to);
int transfer_file_main(const char *verb, int argc, char **argv);
#endif
