/* Serving over a channel that carries only lines of text. Each line has a number, and its bytes in base64. A line that comes
 * twice is taken once, so a host that does not know whether a line has arrived sends it again. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../guest.h"

#define LINE_BYTES 65535u     /* bytes of content in one line that we write */
#define MAX_LINE (16u << 20)
#define FULL (1u << 20)

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

static struct queue text_in, text_out, to_guest;
static uint64_t next_in, next_out;

/* g<number> <base64>, or z<number> <bytes> <base64> when the content is compressed. */
static void put_line(const uint8_t *bytes, size_t length) {
  static uint8_t compressed[LZ4_BOUND(LINE_BYTES)];
  char head[48];
  unsigned long long number = next_out++;
  size_t compressed_length = length > 256 ? lz4_compress(bytes, length, compressed) : length;
  bool is_smaller = compressed_length < length - length / 8;
  int written = is_smaller ? snprintf(head, sizeof head, "z%llu %zu ", number, length) : snprintf(head, sizeof head, "g%llu ", number);
  queue_append(&text_out, head, (size_t)written);
  if (is_smaller) {
    bytes = compressed;
    length = compressed_length;
  }
  for (size_t at = 0; at < length; at += 3) {
    size_t left = length - at;
    uint32_t group = (uint32_t)bytes[at] << 16 | (left > 1 ? (uint32_t)bytes[at + 1] << 8 : 0) | (left > 2 ? bytes[at + 2] : 0);
    char four[4] = {digits[group >> 18], digits[group >> 12 & 63], left > 1 ? digits[group >> 6 & 63] : '=', left > 2 ? digits[group & 63] : '='};
    queue_append(&text_out, four, sizeof four);
  }
  queue_append(&text_out, "\n", 1);
}

static int digit_value(char digit) {
  const char *found = digit ? strchr(digits, digit) : NULL;
  return found ? (int)(found - digits) : -1;
}

/* False when it is not base64 of exactly that many bytes. */
static bool decode(const char *text, size_t length, size_t wanted) {
  if (length != (wanted + 2) / 3 * 4) return false;
  uint8_t *to = queue_room(&to_guest, wanted + 2);
  for (size_t at = 0; at < length; at += 4) {
    uint32_t group = 0;
    for (size_t i = 0; i < 4; i++) {
      bool pads = text[at + i] == '=' && at + 4 == length && i >= 2;
      int value = pads ? 0 : digit_value(text[at + i]);
      if (value < 0) return false;
      group = group << 6 | (uint32_t)value;
    }
    *to++ = (uint8_t)(group >> 16);
    *to++ = (uint8_t)(group >> 8);
    *to++ = (uint8_t)group;
  }
  to_guest.end += wanted;
  return true;
}

/* G<number> <bytes> <base64>, or Q to quit. Anything else is the rest of a line that was cut off, and will come again. */
static bool take_line(const char *line, size_t length) {
  if (length == 1 && line[0] == 'Q') return false;
  char *at;
  if (length < 4 || line[0] != 'G') return true;
  unsigned long long number = strtoull(line + 1, &at, 10);
  if (*at != ' ' || number != next_in) return true;
  unsigned long wanted = strtoul(at + 1, &at, 10);
  if (*at != ' ' || wanted > MAX_LINE) return true;
  at++;
  if (decode(at, length - (size_t)(at - line), wanted)) next_in++;
  return true;
}

static bool take_text(int fd) {
  ssize_t got = read(fd, queue_room(&text_in, DATA_BYTES), DATA_BYTES);
  if (got == 0) return false;
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  size_t fresh = text_in.end - text_in.start;
  text_in.end += (size_t)got;
  for (;;) {
    uint8_t *start = text_in.data + text_in.start;
    uint8_t *end = memchr(start + fresh, '\n', queue_length(&text_in) - fresh);
    if (!end) return queue_length(&text_in) <= 2 * MAX_LINE;
    *end = 0;
    if (!take_line((const char *)start, (size_t)(end - start))) return false;
    queue_take(&text_in, (size_t)(end - start) + 1);
    fresh = 0;
  }
}

static bool flush_queue(int fd, struct queue *queue) {
  while (queue_length(queue) > 0) {
    ssize_t wrote = write(fd, queue->data + queue->start, queue_length(queue));
    if (wrote > 0) queue_take(queue, (size_t)wrote);
    else if (errno == EAGAIN) return true;
    else if (errno != EINTR) return false;
  }
  return true;
}

/* False when the guest has ended. */
static bool take_bytes(int fd) {
  static uint8_t bytes[LINE_BYTES];
  ssize_t got = read(fd, bytes, sizeof bytes);
  if (got > 0) put_line(bytes, (size_t)got);
  return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

static void forward(int in, int out, int guest) {
  for (bool open = true; open;) {
    struct pollfd fds[] = {
        {.fd = queue_length(&to_guest) < FULL ? in : -1, .events = POLLIN},
        {.fd = queue_length(&text_out) > 0 ? out : -1, .events = POLLOUT},
        {.fd = guest, .events = (short)((queue_length(&text_out) < FULL ? POLLIN : 0) | (queue_length(&to_guest) > 0 ? POLLOUT : 0))},
    };
    if (poll(fds, 3, -1) < 0 && errno != EINTR) return;
    if (fds[0].revents && !take_text(in)) return;
    if (!flush_queue(guest, &to_guest)) open = false;
    if (fds[2].revents & (POLLIN | POLLHUP | POLLERR)) open = take_bytes(guest) && open;
    if (!flush_queue(out, &text_out)) return;
  }
}

/* serve-text ROOT: serves in lines on stdin and stdout. Prints the line "x" once everything it started is gone. */
int serve_text_main(const char *root) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) return 125;
  pid_t pid = fork();
  if (pid < 0) return 125;
  if (pid == 0) {
    int empty = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd < 3; fd++) dup2(empty, fd);
    close(ends[0]);
    confinement = CONFINE_SUBREAPER;
    own_machine = true;
    _exit(serve(ends[1], ends[1], root, false, false));
  }
  close(ends[1]);
  signal(SIGPIPE, SIG_IGN);
  /* Open for writing too: then a fifo never ends, whoever opens and closes its other side. */
  int in = open("/proc/self/fd/0", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  if (in < 0) in = 0;
  for (int i = 0, fds[] = {in, 1, ends[0]}; i < 3; i++) fcntl(fds[i], F_SETFL, fcntl(fds[i], F_GETFL) | O_NONBLOCK);
  forward(in, 1, ends[0]);
  shutdown(ends[0], SHUT_RDWR);
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  fcntl(1, F_SETFL, fcntl(1, F_GETFL) & ~O_NONBLOCK);
  queue_append(&text_out, "x\n", 2);
  flush_queue(1, &text_out);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}
