/* The output of a call on its way to the channel. Where nobody follows it, only its first and last bytes are sent: the host would
 * drop what is between them, so it is counted and dropped here. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "call.h"

#define WIDE_PIPE (1 << 20)
/* With its header such a frame fills the buffer that the host reads with, so that the next one starts in the next buffer. */
#define WHOLE_FRAME (DATA_BYTES - HEADER_BYTES)

static size_t smaller_of(size_t a, size_t b) { return a < b ? a : b; }

static bool is_buffering(const struct output *output) { return output->pass == 0 && !output->ended; }

bool takes_output(const struct call *call, int stream) {
  if (call->entering) return false; /* nothing may come before the answer that it has started */
  return is_buffering(&call->outputs[stream]) || (call->credit[stream] > 0 && !channel_is_full());
}

uint64_t left_out(const struct output *output) { return output->buffered > output->tail ? output->buffered - output->tail : 0; }

bool end_output(struct output *output) {
  if (!output->ended) output->sent = left_out(output);
  output->ended = true;
  return output->sent < output->buffered;
}

/* Where the next bytes go, and how many fit. Byte n is stored at n modulo the size of the ring. */
static uint8_t *ring_room(struct output *output, int fd, size_t *room) {
  if (!output->ring) {
    /* A larger pipe lets a busy writer run longer. Where it cannot be made larger, it stays as it is. */
    fcntl(fd, F_SETPIPE_SZ, WIDE_PIPE);
    output->size = output->tail > DATA_BYTES ? output->tail : DATA_BYTES;
    output->ring = malloc(output->size);
    if (!output->ring) _exit(70);
  }
  size_t at = (size_t)(output->buffered % output->size);
  *room = smaller_of(output->size - at, DATA_BYTES);
  return output->ring + at;
}

static uint8_t answer_type(int stream) { return stream == 1 ? ANS_STDOUT : ANS_STDERR; }

static void count_sent(struct call *call, int stream, size_t length) {
  static uint64_t pieces;
  call->sent_at = ++pieces;
  call->credit[stream] -= (uint32_t)length;
}

static void send_tail(struct call *call, int stream) {
  struct output *output = &call->outputs[stream];
  size_t at = (size_t)(output->sent % output->size), length = smaller_of(output->size - at, DATA_BYTES);
  length = smaller_of(smaller_of(length, call->credit[stream]), (size_t)(output->buffered - output->sent));
  count_sent(call, stream, length);
  answer(answer_type(stream), call->id, output->ring + at, length);
  output->sent += length;
}

/* A file, or the part of it that is wanted, or a directory. */
static ssize_t read_source(struct call *call, int fd, uint8_t *to, size_t room) {
  if (call->listing) return listing_read(call->listing, fd, to, room);
  ssize_t got = read(fd, to, (uint64_t)room < call->read_left ? room : (size_t)call->read_left);
  if (got > 0) call->read_left -= (uint64_t)got;
  return got;
}

enum flow pump(struct call *call, int fd, int stream) {
  struct output *output = &call->outputs[stream];
  for (int rounds = 0; rounds < 8 && takes_output(call, stream); rounds++) {
    if (output->ended) {
      send_tail(call, stream);
      if (output->sent == output->buffered) return FLOW_ENDED;
      continue;
    }
    bool buffered = is_buffering(output);
    size_t room = smaller_of(smaller_of(call->credit[stream], output->pass), WHOLE_FRAME);
    uint8_t *to = buffered ? ring_room(output, fd, &room) : answer_room(room);
    ssize_t got = call->reading ? read_source(call, fd, to, room) : read(fd, to, room);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return FLOW_EMPTY;
    if (got < 0) call->read_error = errno;
    if (got <= 0) {
      if (!end_output(output)) return FLOW_ENDED;
      continue;
    }
    call->quiet_since = now_ms();
    if (buffered) {
      output->buffered += (uint64_t)got;
    } else {
      count_sent(call, stream, (size_t)got);
      answer_in_room(answer_type(stream), call->id, (size_t)got);
      if (output->pass != KEEP_ALL) output->pass -= (uint32_t)got;
    }
    /* That was probably all, and the next poll finds out. Once the process tree has ended it must be known here. */
    if ((size_t)got < room && !call->reading && (call->supervisor.pid != 0 || call->connection)) break;
  }
  return FLOW_MORE;
}
