/* Handles one request frame. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../guest.h"

#define SMALL_FILE (256u << 10) /* bytes that fit into one answer */
enum { WITH_STDIN = 1, WITH_TERMINAL = 2, WITH_USER = 4, WITH_CAPABILITIES = 8, WITH_KEPT = 16, WITH_COMBINED = 32, WITH_LATE_START = 128 };

/* Arguments for the worker that is forked next. */
static char worker_name[256];
static uint64_t worker_limit;

static int worker_remove(int directory) { return worker_name[0] ? remove_tree(directory, worker_name) : remove_contents(directory); }
static int worker_tar_in(int directory) { return tar_in(directory, worker_limit); }

static void fail(struct call *call, uint32_t id, int error, const char *what) {
  answer_fail(id, -error, what);
  if (call) call_free(call);
}

static bool is_keepable(uint32_t kept) { return kept == KEEP_ALL || kept <= MAX_KEPT; }

static bool start(uint32_t id, struct reader *r) {
  uint8_t flags = read_u8(r);
  uint16_t cols = read_u16(r), rows = read_u16(r);
  uint32_t deadline = read_u32(r);
  const char *cwd = read_string(r);
  struct command command = {.jailed = jailed, .combined = flags & WITH_COMBINED};
  command.argv = read_strings(r);
  command.env = read_strings(r);
  const char *user = flags & WITH_USER ? read_string(r) : NULL;
  uint32_t out = flags & WITH_KEPT ? read_u32(r) : KEEP_ALL, err = flags & WITH_KEPT ? read_u32(r) : KEEP_ALL;
  bool good = !r->bad && r->at == r->end && is_keepable(out) && is_keepable(err) && command.argv && command.argv[0] && command.env && add_inherited_env(&command.env);
  if (good) {
    struct call *call = call_new(id);
    int error = call ? 0 : -EAGAIN;
    struct identity identity = default_identity;
    if (!error && user && (!in_container || !find_identity(user, &identity))) error = -NO_USER;
    if (!error) {
      if (in_container) command.as = &identity;
      if (in_container && flags & WITH_CAPABILITIES) command.jailed = false;
      call_keep_output(call, out, err);
      if (*cwd == '/') command.place = cwd;
      command.cwd = files_open_directory(command.place ? "" : cwd);
      error = command.cwd < 0 ? command.cwd : call_start(call, &command, flags & WITH_STDIN, flags & WITH_TERMINAL ? cols : 0, rows, deadline);
      if (command.cwd >= 0) close(command.cwd);
    }
    if (error) fail(call, id, error, "start");
    else if (command.place) call_await_entry(call);
    else if (flags & WITH_LATE_START) answer_late(ANS_STARTED, id);
    else answer(ANS_STARTED, id, NULL, 0);
  }
  free(command.argv);
  free(command.env);
  return good;
}

static void read_file(uint32_t id, const char *path) {
  uint64_t size = 0;
  int fd = files_open_read(path, &size);
  if (fd < 0) return fail(NULL, id, fd, path);
  if (size <= SMALL_FILE) {
    static uint8_t bytes[SMALL_FILE + 1];
    size_t length = 0;
    ssize_t got = 1;
    while (length < sizeof bytes && got != 0) {
      got = read(fd, bytes + length, sizeof bytes - length);
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) {
        int error = errno;
        close(fd);
        return fail(NULL, id, -error, path);
      }
      length += (size_t)got;
    }
    if (length <= SMALL_FILE) {
      close(fd);
      answer(ANS_RESULT, id, bytes, length);
      return;
    }
    lseek(fd, 0, SEEK_SET); /* it has grown meanwhile */
  }
  struct call *call = call_new(id);
  if (!call) {
    close(fd);
    return fail(NULL, id, -EAGAIN, path);
  }
  call_read_file(call, fd, UINT64_MAX);
  answer(ANS_STARTED, id, NULL, 0);
}

static void write_stream(uint32_t id, const char *path, uint32_t mode) {
  struct call *call = call_new(id);
  struct pending_file file;
  int error = call ? pending_create(path, mode, &file) : -EAGAIN;
  if (error) return fail(call, id, error, path);
  call_write_file(call, &file);
  answer(ANS_STARTED, id, NULL, 0);
}

static void list(uint32_t id, const char *path) {
  struct queue names = {0};
  int error = files_list(path, &names);
  if (error) fail(NULL, id, error, path);
  else answer(ANS_RESULT, id, names.data, queue_length(&names));
  free(names.data);
}

static void start_worker(uint32_t id, int directory, int (*how)(int directory), const char *path) {
  if (directory < 0) return fail(NULL, id, directory, path);
  struct call *call = call_new(id);
  int error = call ? call_start_worker(call, how, directory, -1) : -EAGAIN;
  close(directory);
  if (error) return fail(call, id, error, path);
  answer(ANS_STARTED, id, NULL, 0);
}

static void remove_path(uint32_t id, const char *path, bool recursive) {
  if (!recursive) {
    int error = files_remove(path);
    if (error) fail(NULL, id, error, path);
    else answer(ANS_RESULT, id, NULL, 0);
    return;
  }
  worker_name[0] = 0;
  int directory = *path ? files_open_parent(path, false, worker_name) : files_open_directory("");
  if (directory >= 0 && *path && is_mount_point(directory, worker_name)) {
    close(directory);
    directory = -EBUSY; /* before it is emptied */
  }
  start_worker(id, directory, worker_remove, path);
}

void answer_done(uint32_t id, int error, const char *path) {
  if (error) fail(NULL, id, error, path);
  else answer(ANS_RESULT, id, NULL, 0);
}

/* A request about a call that has just ended is no error: it crossed the answer. */
static bool handle_call_request(const struct frame *frame, struct reader *r) {
  struct call *call = call_find(frame->call);
  if (!call && forward_call_request(frame)) return true;
  uint8_t number = 0;
  uint32_t bytes;
  uint16_t cols, rows;
  switch (frame->type) {
    case REQ_STDIN:
      if (frame->length > DATA_BYTES) return false;
      return !call || call_stdin(call, frame->body, frame->length);
    case REQ_STDIN_END:
      if (call) call_stdin_end(call);
      return frame->length == 0;
    case REQ_SIGNAL:
      number = read_u8(r);
      if (r->bad || number == 0 || number > 31) return false;
      if (call) call_signal(call, number);
      return true;
    case REQ_CREDIT:
      number = read_u8(r);
      bytes = read_u32(r);
      if (r->bad || number < 1 || number > 2) return false;
      if (call) call_credit(call, number, bytes);
      return true;
    default:
      cols = read_u16(r);
      rows = read_u16(r);
      if (call && !r->bad) call_resize(call, cols, rows);
      return !r->bad;
  }
}

static bool handle_file_request(const struct frame *frame, struct reader *r) {
  uint32_t id = frame->call;
  const char *path = read_string(r), *other;
  uint32_t mode;
  uint8_t described[21], flag;
  if (r->bad) return false;
  switch (frame->type) {
    case REQ_READ:
      read_file(id, path);
      return true;
    case REQ_WRITE:
      mode = read_u32(r);
      if (!r->bad) answer_done(id, files_write(path, mode, r->at, (size_t)(r->end - r->at)), path);
      return !r->bad;
    case REQ_WRITE_STREAM:
      mode = read_u32(r);
      if (!r->bad) write_stream(id, path, mode);
      return !r->bad;
    case REQ_STAT: {
      int error = files_stat(path, described);
      if (error) fail(NULL, id, error, path);
      else answer(ANS_RESULT, id, described, sizeof described);
      return true;
    }
    case REQ_LIST:
      list(id, path);
      return true;
    case REQ_REMOVE:
      flag = read_u8(r);
      if (!r->bad) remove_path(id, path, flag != 0);
      return !r->bad;
    case REQ_RENAME:
      other = read_string(r);
      if (!r->bad) answer_done(id, files_rename(path, other), path);
      return !r->bad;
    case REQ_MAKE_DIRECTORY:
      answer_done(id, files_make_directory(path), path);
      return true;
    case REQ_TAR_OUT:
      start_worker(id, files_open_directory(path), tar_out, path);
      return true;
    case REQ_TAR_IN: {
      uint32_t megabytes = read_u32(r);
      if (r->bad) return false;
      worker_limit = (uint64_t)megabytes << 20;
      int error = files_make_directory(path);
      start_worker(id, error ? error : files_open_directory(path), worker_tar_in, path);
      return true;
    }
    default:
      return false;
  }
}

/* Requests that concern the whole sandbox. */
static bool handle_sandbox_request(const struct frame *frame, struct reader *r) {
  if (frame->type == REQ_FREEZE) {
    int error = freeze_all(frame->call);
    if (error) answer_fail(frame->call, -error, "freeze");
    return true;
  }
  uint16_t port = frame->type == REQ_LISTEN ? read_u16(r) : 0;
  if (r->bad) return false;
  answer_done(frame->call, frame->type == REQ_LISTEN ? listen_on(port) : thaw_all(), "the sandbox");
  return true;
}

/* Requests about servers in the sandbox. */
static bool handle_port_request(const struct frame *frame, struct reader *r) {
  uint16_t port = read_u16(r);
  uint32_t patience = frame->type == REQ_AWAIT_PORT ? read_u32(r) : 0;
  if (r->bad || r->at != r->end || port == 0 || patience > INT32_MAX) return false;
  int error = frame->type == REQ_CONNECT ? connect_port(frame->call, port) : await_port(frame->call, port, patience);
  if (error) fail(NULL, frame->call, error, "the port");
  return true;
}

/* Requests about listeners on loopback addresses, and about the resolver, which all concern the whole sandbox. */
static bool handle_names_request(const struct frame *frame, struct reader *r) {
  uint32_t number = read_u32(r);
  if (frame->type == REQ_REPLY) {
    if (!r->bad) answer_query(number, r->at, (size_t)(r->end - r->at));
    return !r->bad;
  }
  uint16_t port = read_u16(r);
  if (r->bad || r->at != r->end || number >> 24 != 127 || port == 0) return false;
  int (*const what)(uint32_t, uint16_t) = frame->type == REQ_LISTEN_AT ? listen_at : frame->type == REQ_STOP_LISTENING ? stop_listening : start_resolver;
  answer_done(frame->call, what(number, port), "the address");
  return true;
}

bool handle_request(const struct frame *frame) {
  struct reader r = {.at = frame->body, .end = frame->body + frame->length};
  bool opens = frame->type == REQ_START || frame->type >= REQ_READ;
  if (opens && call_find(frame->call)) return false;
  if (is_for_file_process(frame)) {
    forward_request(frame);
    return true;
  }
  if (only_files && (frame->type == REQ_START || frame->type >= REQ_CONNECT || (frame->type >= REQ_FREEZE && frame->type <= REQ_LISTEN))) return false;
  if (frame->type == REQ_START) return start(frame->call, &r);
  if (frame->type >= REQ_STDIN && frame->type <= REQ_RESIZE) return handle_call_request(frame, &r);
  if (frame->type >= REQ_FREEZE && frame->type <= REQ_LISTEN) return handle_sandbox_request(frame, &r);
  if (frame->type == REQ_CONNECT || frame->type == REQ_AWAIT_PORT) return handle_port_request(frame, &r);
  if (frame->type >= REQ_LISTEN_AT && frame->type <= REQ_REPLY) return handle_names_request(frame, &r);
  if (frame->type >= REQ_LIST_ENTRIES && frame->type <= REQ_READ_RANGE) return handle_newer_file_request(frame, &r);
  return handle_file_request(frame, &r);
}
