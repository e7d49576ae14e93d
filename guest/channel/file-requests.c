/* Handles the file requests of edition 2. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../guest.h"

static void list_entries(uint32_t id, const char *path, bool details) {
  static uint8_t first[DATA_BYTES];
  int directory = files_open_readable_directory(path);
  if (directory < 0) return answer_fail(id, -directory, path);
  struct listing *listing = listing_new(details);
  ssize_t length = listing ? listing_read(listing, directory, first, sizeof first) : -1;
  int error = !listing ? ENOMEM : length < 0 ? errno : 0;
  if (length == (ssize_t)sizeof first) {
    struct call *call = call_new(id);
    if (call) {
      answer(ANS_STARTED, id, NULL, 0);
      call_list(call, directory, listing, first, sizeof first);
      return;
    }
    error = EAGAIN;
  }
  close(directory);
  free(listing);
  if (error) answer_fail(id, error, path);
  else answer(ANS_RESULT, id, first, (size_t)length);
}

static void read_range(uint32_t id, const char *path, uint64_t start, uint64_t length) {
  uint64_t size;
  int fd = files_open_read(path, &size);
  if (fd < 0) return answer_fail(id, -fd, path);
  struct call *call = call_new(id);
  /* Nothing is at a position that no file can have. */
  if (call && (start > INT64_MAX || lseek(fd, (off_t)start, SEEK_SET) < 0)) length = 0;
  if (!call) {
    close(fd);
    return answer_fail(id, EAGAIN, path);
  }
  call_read_file(call, fd, length);
  answer(ANS_STARTED, id, NULL, 0);
}

static void append_stream(uint32_t id, const char *path, uint32_t mode) {
  struct call *call = call_new(id);
  struct pending_file file;
  int error = call ? pending_create(path, mode, &file) : -EAGAIN;
  if (error) {
    answer_fail(id, -error, path);
    if (call) call_free(call);
    return;
  }
  file.appends = true;
  call_write_file(call, &file);
  answer(ANS_STARTED, id, NULL, 0);
}

/* Arguments for the worker that is forked next. */
static struct {
  char name[256], new_name[256], temporary[TEMPORARY_NAME];
  bool recursive;
} copying;

static int worker_copy(int from) { return copy_name(from, copying.name, WORKER_OTHER, copying.new_name, copying.temporary, copying.recursive); }

static void copy(uint32_t id, const char *from, const char *to, bool recursive) {
  int origin = files_open_parent(from, false, copying.name);
  if (origin < 0) return answer_fail(id, -origin, from);
  int target = files_open_parent(to, true, copying.new_name);
  if (target < 0) {
    close(origin);
    return answer_fail(id, -target, to);
  }
  make_temporary_name(copying.temporary);
  copying.recursive = recursive;
  struct call *call = call_new(id);
  int error = call ? call_start_worker(call, worker_copy, origin, target) : -EAGAIN;
  close(origin);
  if (error) {
    close(target);
    answer_fail(id, -error, from);
    if (call) call_free(call);
    return;
  }
  call_undo_by_removing(call, target, copying.temporary);
  answer(ANS_STARTED, id, NULL, 0);
}

bool handle_newer_file_request(const struct frame *frame, struct reader *r) {
  uint32_t id = frame->call, mode;
  const char *path = read_string(r), *other;
  uint64_t start, length;
  uint8_t flag, described[21];
  int error;
  switch (frame->type) {
    case REQ_LIST_ENTRIES:
      flag = read_u8(r);
      if (!r->bad) list_entries(id, path, flag != 0);
      return !r->bad;
    case REQ_STAT_TARGET:
      if (r->bad) return false;
      error = files_stat_target(path, described);
      if (error) answer_fail(id, -error, path);
      else answer(ANS_RESULT, id, described, sizeof described);
      return true;
    case REQ_REMOVE_DIRECTORY:
      if (!r->bad) answer_done(id, files_remove_directory(path), path);
      return !r->bad;
    case REQ_COPY:
      other = read_string(r);
      flag = read_u8(r);
      if (!r->bad) copy(id, path, other, flag != 0);
      return !r->bad;
    case REQ_APPEND:
      mode = read_u32(r);
      if (!r->bad) answer_done(id, files_append(path, mode, r->at, (size_t)(r->end - r->at)), path);
      return !r->bad;
    case REQ_APPEND_STREAM:
      mode = read_u32(r);
      if (!r->bad) append_stream(id, path, mode);
      return !r->bad;
    default:
      start = read_u64(r);
      length = read_u64(r);
      if (!r->bad) read_range(id, path, start, length);
      return !r->bad;
  }
}
