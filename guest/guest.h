/* What the files of the guest share, in the order of README.md. */
#ifndef GLOVEBOX_GUEST_H
#define GLOVEBOX_GUEST_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <poll.h>
#include <sys/types.h>

#include "channel/frame.h"
#include "channel/link.h"
#include "process/container.h"

/* One for each verb that main.c knows; each returns the exit code. */
int serve_text_main(const char *root);
int dial_main(int argc, char **argv);
int relay_main(int argc, char **argv);
int attach_main(void);
int run_once_main(int argc, char **argv);
int exec_with_parent_main(int argc, char **argv);
int transfer_file_main(const char *verb, int argc, char **argv);
int replicate_main(int argc, char **argv);
int compare_index_main(int argc, char **argv);
int compare_overlay_main(int argc, char **argv);
int gather_changes_main(int argc, char **argv);
int git_head_main(int argc, char **argv);
int launch_main(int argc, char **argv);
int open_low_ports_main(int argc, char **argv);
int starter_main(int argc, char **argv);
int socket_owner_main(void);
int canary_main(int argc, char **argv);
int serve_files_main(void);

/* Each call has a PID namespace of its own, or, where there is none to be had, a subreaper. */
enum confinement { CONFINE_NAMESPACE = 1, CONFINE_SUBREAPER = 2 };

/* channel/serve.c */
extern enum confinement confinement;
extern bool jailed;
extern bool only_files; /* this is the file process: it serves file requests and nothing else */
int serve(int in, int out, const char *root, bool with_self_test, bool only_loopback);
void answer(uint8_t type, uint32_t call, const void *body, size_t length);
/* The same without a copy: the body is written to the room, before any other answer. */
uint8_t *answer_room(size_t length);
void answer_in_room(uint8_t type, uint32_t call, size_t length);
/* For a process that is forked from here and has nothing to do with the channel: it gives up its copy of what is on the way. */
void forget_channel(void);
/* An answer without a body that may be sent a little later, together with others. */
void answer_late(uint8_t type, uint32_t call);
void answer_fail(uint32_t call, int error, const char *message);
bool channel_is_full(void);
int64_t now_ms(void);

/* channel/requests.c: false when the peer broke the protocol. */
bool handle_request(const struct frame *frame);
void answer_done(uint32_t call, int error, const char *path);
/* channel/file-requests.c: the file requests of edition 2. */
bool handle_newer_file_request(const struct frame *frame, struct reader *r);

/* channel/file-process.c: requests with absolute paths are served by a process that has the rights of a command, and nothing of the guest's.
 * forward_request starts it; the other two concern calls that it has. */
bool is_for_file_process(const struct frame *frame);
void forward_request(const struct frame *frame);
bool forward_call_request(const struct frame *frame);
bool is_file_process(pid_t pid);
/* Whether it takes more requests now. */
bool file_process_has_room(void);
struct pollfd file_process_poll(void);
void file_process_ready(short events);
bool file_process_ended(pid_t pid);
/* Lets it remove what unfinished calls have written, and end. */
void file_process_close(void);

/* channel/listen.c */
#define MAX_LISTENERS 64
/* The first is for one listener on 127.0.0.1; the others are for any on loopback addresses. 0 or a negative errno. */
int listen_on(uint16_t port);
int listen_at(uint32_t address, uint16_t port);
int stop_listening(uint32_t address, uint16_t port);
/* Fills in at most MAX_LISTENERS, and returns how many. */
size_t listeners_poll(struct pollfd *fds);
void listeners_ready(const struct pollfd *fds, size_t count);

/* channel/resolve.c: 0 or a negative errno. */
int start_resolver(uint32_t address, uint16_t port);
struct pollfd resolver_poll(void);
void take_queries(void);
/* Without bytes the query gets no answer. */
void answer_query(uint32_t place, const uint8_t *bytes, size_t length);

/* channel/reach.c: 0, and the call answers when it is connected or refused; or a negative errno, and there is no call. */
int connect_port(uint32_t id, uint16_t port);
int await_port(uint32_t id, uint16_t port, uint32_t patience);

/* channel/dial.c */
bool add_inherited_env(char ***env);

/* channel/lz4.c: returns the length of what it wrote; `to` has room for LZ4_BOUND(length). */
#define LZ4_BOUND(length) ((length) + (length) / 255 + 16)
size_t lz4_compress(const uint8_t *from, size_t length, uint8_t *to);

/* One command as it was requested. The pointers lead into the request frame. */
struct command {
  char **argv, **env;
  int cwd;            /* an open directory */
  const char *place;  /* an absolute path that the command itself enters instead; or null */
  int in, out, err;   /* the command's ends; with a terminal all the same */
  bool terminal;
  bool combined;      /* stdout and stderr are one pipe */
  bool jailed;        /* no capabilities, no new privileges, the seccomp filter */
  const struct identity *as; /* in a container: the user */
  int (*builtin)(void); /* runs instead of argv when set */
};

/* A started command: its supervisor, and the two pipes to it. */
struct supervisor {
  pid_t pid;
  int control;  /* bytes to it: a signal number, or one of CONTROL_* */
  int status;   /* from it: a `struct ending` when the command itself has ended */
  int commands; /* the socket for its next command; -1 when it takes one only */
  bool control_used; /* something was written to `control`, and may still be there */
};

struct ending {
  int32_t signaled;
  int32_t code;
  int32_t tree; /* what is left of everything that the command started: one of TREE_* */
};
/* Processes are left; none, and the supervisor exits; none, and the supervisor takes another command. */
enum { TREE_RUNNING, TREE_GONE, TREE_GONE_REUSE };

enum { CONTROL_KILL_ALL = 0xff, CONTROL_FREEZE = 0xfe, CONTROL_THAW = 0xfd };
/* The exit code of a supervisor that could not start its command, unless it knows an errno. */
#define START_FAILED 125
/* In `signaled`, not the end of the command: everything is frozen, or, with a code, could not be; the command is in its `place`, or, with an
 * errno as code, could not enter it. */
#define ENDING_FROZEN (-1)
#define ENDING_ENTERED (-2)

/* calls/calls.c, calls/call-events.c: the calls under way. A call ends with ANS_EXIT, ANS_RESULT or ANS_FAIL, once. */
struct call;
struct pending_file;
struct call *call_find(uint32_t id);
struct call *call_new(uint32_t id);
int call_start(struct call *call, struct command *command, bool with_stdin, uint16_t cols, uint16_t rows, uint32_t deadline);
/* Long file work in a process of its own. What `work` returns is its exit code. `other` is a second directory, WORKER_OTHER there, or -1. */
#define WORKER_OTHER 4
int call_start_worker(struct call *call, int (*work)(int directory), int directory, int other);
/* What is there under this name goes away when the worker fails or is killed. The call closes `parent`. */
void call_undo_by_removing(struct call *call, int parent, const char *name);
/* Only this many bytes of its outputs are kept, half of them from the end. Who wants more than MAX_KEPT asks for all. */
#define MAX_KEPT (4u << 20)
#define KEEP_ALL UINT32_MAX
void call_keep_output(struct call *call, uint32_t out, uint32_t err);
/* Its start is answered once the command is in its `place`. */
void call_await_entry(struct call *call);
void call_read_file(struct call *call, int fd, uint64_t most);
struct listing;
/* Sends the first bytes of a listing at once, and the rest as credit comes. The call owns both. */
void call_list(struct call *call, int directory, struct listing *listing, const uint8_t *first, size_t length);
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
#define MAX_CALLS 768 /* of which at most 256 are connections of the listener, and 256 connections to servers */
/* The channel has closed: removes what unfinished calls have written. */
void calls_undo(void);
#define POLLS_PER_CALL 4

/* calls/pipes.c: our ends of a call's streams; -1 where there is none. */
struct ends {
  int in, out, err;
};
int open_pipes(struct command *command, bool with_stdin, struct ends *ours);
int open_terminal(struct command *command, uint16_t cols, uint16_t rows, struct ends *ours);
void close_command_ends(const struct command *command);

/* calls/freeze.c: the first two run in a supervisor, or as PID 1 of a container. */
bool freeze_namespace(void);
void thaw_namespace(void);
int freeze_all(uint32_t request);
int thaw_all(void);
void call_frozen(struct call *call, bool frozen);
void settle_freeze(void);

/* process/spawn.c: 0 or a negative errno. */
int start_command(const struct command *command, enum confinement confinement, struct supervisor *out);
/* The process that serves file requests as a command could do them. Returns its pid. */
int start_file_process(enum confinement confinement, int channel);
/* A supervisor that waits for a jailed command. Returns its pid. */
int start_pooled_supervisor(enum confinement confinement, struct supervisor *out);
void kill_supervised(const struct supervisor *supervisor, enum confinement confinement);

/* process/mount-proc.c */
extern bool commands_are_root; /* the machine's user 0, without capabilities: most of the kernel's files in /proc belong to it */
#define OUTER_PROC "/glovebox/proc"
bool hide_outer_proc(void);
bool mount_proc(void);

/* process/enter-directory.c: makes an open directory the current one. Returns an errno; never ends in another directory. */
int enter_directory(int directory, enum confinement confinement);
/* The same for an absolute path, without the links of /proc to what a process has open. */
int enter_place(const char *place);

/* process/supervisor-pool.c: making a supervisor takes longer than the rest of a start, so they are made in advance and used again. */
extern int64_t process_limit; /* how many processes this jail may have; -1 without a limit */
bool has_few_processes(void); /* so few that each one counts, and that there is no pool */
void pool_fill(void);
/* Ends those that have not been needed for a while. Returns the ms until it must be called again, or -1. */
int pool_trim(void);
bool pool_start(const struct command *command, struct supervisor *out);
/* Takes a supervisor whose command has ended, with everything that it started. False when it cannot be used again. */
bool pool_return(const struct supervisor *supervisor);
bool pool_child_ended(pid_t pid);
bool is_pooled(pid_t pid);

/* process/command-message.c: a command on its way to a pooled supervisor, with stdin, stdout, stderr and the work directory. */
#define COMMAND_CWD 3 /* after the three streams */
#define COMMAND_DESCRIPTORS 4
bool fits_command_message(const struct command *command);
bool send_command(int socket, const struct command *command);
/* `as` is filled in if the command has an identity. */
bool receive_command(int socket, struct command *command, struct identity *as, int fds[COMMAND_DESCRIPTORS]);
void free_received(struct command *command);

/* process/supervisor-state.c: what a command can change about its supervisor from outside. */
void remember_supervisor_state(void);
bool is_supervisor_unchanged(void);

/* process/kill-descendants.c: kill_children sends SIGKILL to the direct children once, and returns how many there were.
 * kill_descendants repeats that until there are none: as their subreaper we become the parent of orphans. */
extern bool own_machine; /* the whole machine is the sandbox: commands may become root, and what they start is killed as root */
int kill_children(bool (*excluded)(pid_t pid));
void kill_descendants(void);

/* process/descriptors.c */
void close_from(unsigned first);
/* Puts `fds` at 0, 1, … in their order, whatever numbers they have now, and closes all others. False when that fails. */
bool arrange_descriptors(const int *fds, int count);
/* So that no pipe or channel ever gets one of the three numbers of standard streams. */
void reserve_standard_descriptors(void);
/* The guest needs more descriptors than the default limit allows. Commands get the old limit. */
void raise_descriptor_limit(void);
void restore_descriptor_limit(void);

/* process/jail.c */
int drop_privileges(void);
void isolate_abstract_sockets(void);
int install_seccomp_filter(void);

/* process/cgroup.c: negative when unknown, or without a limit. */
int64_t cgroup_process_limit(void);
/* How many processes of this container the kernel has killed because memory ran out. */
int64_t cgroup_oom_kills(void);

/* process/self-test.c: runs as a command. Exits with 0, or prints what is not confined. */
int self_test(void);
void self_test_expects(bool only_loopback);

/* files/files.c: each returns its result or a negative errno, or one of these, negative. */
#define ESCAPES 10001     /* the path leads outside the root */
#define NOT_REGULAR 10002 /* it exists and is no regular file */
#define NO_USER 10003     /* the container has no such user */
int files_open_root(const char *path);
void files_use_root(int directory);
/* From here on absolute paths lead anywhere in this process's file system, except by links of /proc. Otherwise they are ESCAPES. */
int files_allow_absolute(void);
int files_open_directory(const char *path);
int files_open_read(const char *path, uint64_t *size);
int files_write(const char *path, uint32_t mode, const uint8_t *bytes, size_t length);
int files_stat(const char *path, uint8_t out[21]);
/* Like files_stat, but of what a link leads to. -ELOOP: the links form a loop. */
int files_stat_target(const char *path, uint8_t out[21]);
int files_open_readable_directory(const char *path);
/* Only an empty one. */
int files_remove_directory(const char *path);
int files_list(const char *path, struct queue *out);
int files_remove(const char *path);
int files_rename(const char *from, const char *to);
int files_make_directory(const char *path);
/* It can be neither renamed nor removed. */
bool is_mount_point(int parent, const char *name);
/* Opens the parent directory of `path`, made if `make`; `name` gets the last name. */
int files_open_parent(const char *path, bool make, char name[256]);
/* Like files_open_parent with `make`, for what a link at `path` leads to. */
int files_open_target(const char *path, char name[256]);
uint8_t file_kind(mode_t mode);
/* A name for what is being made, beside what it will become. */
#define TEMPORARY_NAME 40
void make_temporary_name(char name[TEMPORARY_NAME]);

/* A file that is being written. It gets its name by pending_commit. */
struct pending_file {
  int fd, parent;
  uint32_t mode;
  bool appends; /* when it is committed, to the file that has the name */
  char temporary[TEMPORARY_NAME], name[256];
};
/* In a mode: a regular file that is replaced keeps its own. */
#define KEEPS_MODE 01000000u
int pending_create(const char *path, uint32_t mode, struct pending_file *out);
int pending_append(struct pending_file *file, const uint8_t *bytes, size_t length);
int pending_commit(struct pending_file *file);
void pending_discard(struct pending_file *file);

/* files/append.c: a file that does not exist is made with these permission bits. */
int files_append(const char *path, uint32_t mode, const uint8_t *bytes, size_t length);
int append_pending(const struct pending_file *file);

/* files/list-directory.c: the entries of a directory as records: u8 length of the name, the name; with details before that u8 kind, u16
 * permission bits, u64 size, u64 ms. */
struct listing *listing_new(bool details);
/* Like read(2) of the directory: 0 at the end, -1 with errno. A record may be cut. */
ssize_t listing_read(struct listing *listing, int directory, uint8_t *to, size_t room);

/* files/copy.c: copies `name` of a directory to `new_name` of another one, whole or not at all. Returns an errno, or one of tar.h. */
int copy_name(int from, const char *name, int to, const char *new_name, const char *temporary, bool recursive);
/* Whether `directory` is `tree` or below it. */
bool is_within(int directory, int tree);
/* files/replicate.c: one file, link or directory of any size. `path` gets where it failed. */
int replicate_one(int from, int to, const char *name, const char **path);

/* files/remove-tree.c, files/tar-out.c, files/tar-in.c: long work for a process of its own. Each returns an errno as exit code. */
int remove_tree(int parent, const char *name);
int remove_contents(int directory);
int tar_out(int directory);
int tar_in(int root, uint64_t max_bytes);

/* changes/git-head.c: the commit that is checked out and the line of HEAD, if two plain files say so. */
bool read_git_head(const char *git, char head[1024], char commit[1024]);
#endif
