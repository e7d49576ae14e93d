/* The guest where there is no channel: it stays resident, and requests come as numbered files (letters), each taken once however
 * often it is written. Answers are printed as text by another process of this program, which may be cut off at any time: answers
 * are stored here until the host confirms them. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../guest.h"
#include "replay.h"

#define MAX_LETTER (8u << 20)
#define PIECE (48u << 10)
#define MAX_BUNDLE (1u << 20)   /* bytes in one file */
#define MIN_BUNDLE (128u << 10) /* fewer are printed instead */
#define BUNDLE_NAMES 128        /* names of such files: more than fit into the window, so none is in use twice */
#define BUNDLE_PAUSE 5          /* ms */
#define HEARTBEAT 10000         /* ms of silence after which an empty line shows that the connection is alive */
#define RESCAN 500              /* ms, in case a notification of a new file is lost */
#define LINGER 10000            /* ms during which a reader may still fetch the last answers after the guest has ended */

static struct queue to_guest;
static struct replay answers;
static unsigned next_letter;

/* A letter: u32 length of the rest, u64 position up to which the host has all answers, requests. False: there is none yet. */
static bool take_letter(const char *directory) {
  char path[PATH_MAX];
  uint8_t head[12];
  struct stat stat;
  snprintf(path, sizeof path, "%s/%u", directory, next_letter);
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return false;
  bool whole = fstat(fd, &stat) == 0 && S_ISREG(stat.st_mode) && read(fd, head, sizeof head) == (ssize_t)sizeof head;
  uint32_t length = whole ? load_u32(head) : 0;
  whole = whole && length >= 8 && length <= MAX_LETTER && stat.st_size >= (off_t)length + 4;
  size_t left = whole ? length - 8 : 0, before = to_guest.end - to_guest.start;
  while (whole && left > 0) {
    ssize_t got = read(fd, queue_room(&to_guest, left), left);
    if (got <= 0) whole = false;
    else to_guest.end += (size_t)got, left -= (size_t)got;
  }
  close(fd);
  if (!whole) {
    to_guest.end = to_guest.start + before;
    return false;
  }
  replay_confirm(&answers, load_u64(head + 4));
  unlink(path);
  /* The previous letter may have been written again. */
  if (next_letter > 0) {
    snprintf(path, sizeof path, "%s/%u", directory, next_letter - 1);
    unlink(path);
  }
  next_letter++;
  return true;
}

static void close_reader(int *reader) {
  if (*reader >= 0) close(*reader);
  *reader = -1;
}

/* The newest reader replaces the old one, and gets everything from the position that it names. */
static void accept_reader(int listening, int *reader) {
  int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
  if (fd < 0) return;
  struct ucred peer;
  socklen_t size = sizeof peer;
  struct timeval patience = {.tv_sec = 2};
  uint8_t from[8];
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  bool known = getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == getuid();
  uint64_t position = known && recv(fd, from, sizeof from, MSG_WAITALL) == (ssize_t)sizeof from ? load_u64(from) : 0;
  if (!known || !replay_from(&answers, position)) {
    close(fd);
    return;
  }
  close_reader(reader);
  *reader = fd;
}

static void send_answers(int *reader) {
  while (*reader >= 0 && replay_unsent(&answers) > 0) {
    ssize_t wrote = send(*reader, replay_next(&answers), replay_unsent(&answers), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (wrote > 0) answers.sent += (size_t)wrote;
    else if (errno == EAGAIN) return;
    else if (errno != EINTR) close_reader(reader);
  }
}

/* Moves letters to the guest and its answers to the reader, until the guest has ended. */
static void forward(int guest, int listening, const char *directory) {
  int notices = inotify_init1(IN_CLOEXEC | IN_NONBLOCK), reader = -1;
  int64_t ended = 0;
  /* A service may write a letter first and change its owner after that. */
  if (notices >= 0) inotify_add_watch(notices, directory, IN_CLOSE_WRITE | IN_MOVED_TO | IN_ATTRIB);
  for (;;) {
    while (queue_length(&to_guest) < MAX_LETTER && take_letter(directory)) continue;
    while (!ended && queue_length(&to_guest) > 0) {
      ssize_t wrote = send(guest, to_guest.data + to_guest.start, queue_length(&to_guest), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (wrote > 0) queue_take(&to_guest, (size_t)wrote);
      else if (errno != EINTR) break;
    }
    send_answers(&reader);
    if (ended && ((reader >= 0 && replay_unsent(&answers) == 0) || now_ms() - ended > LINGER)) return;
    bool room = !ended && queue_length(&answers.bytes) < REPLAY_WINDOW;
    struct pollfd fds[4] = {
        {.fd = listening, .events = POLLIN},
        {.fd = reader, .events = replay_unsent(&answers) > 0 ? POLLIN | POLLOUT : POLLIN},
        {.fd = ended ? -1 : guest, .events = (short)((room ? POLLIN : 0) | (queue_length(&to_guest) > 0 ? POLLOUT : 0))},
        {.fd = notices, .events = POLLIN},
    };
    poll(fds, 4, RESCAN);
    uint8_t waste[4096];
    if (fds[3].revents)
      while (read(notices, waste, sizeof waste) > 0) continue;
    if (fds[2].revents & (POLLIN | POLLHUP | POLLERR)) {
      ssize_t got = recv(guest, queue_room(&answers.bytes, PIECE), PIECE, MSG_DONTWAIT);
      if (got > 0) answers.bytes.end += (size_t)got;
      else if (got == 0 || (errno != EAGAIN && errno != EINTR)) ended = now_ms();
    }
    if (fds[1].revents & (POLLIN | POLLHUP | POLLERR) && recv(reader, waste, sizeof waste, MSG_DONTWAIT) == 0) close_reader(&reader);
    if (fds[0].revents) accept_reader(listening, &reader);
  }
}

/* In a session of its own, so that it survives the command that started it. */
static void become_resident(int listening, const char *directory, const char *root) {
  int pair[2], nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  setsid();
  for (int fd = 0; fd < 3; fd++) dup2(nothing, fd);
  if (nothing < 0 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) _exit(125);
  pid_t pid = fork();
  if (pid == 0) {
    close(listening);
    close(pair[0]);
    own_machine = true;
    _exit(serve(pair[1], pair[1], root, false, false));
  }
  close(pair[1]);
  if (pid < 0) _exit(125);
  signal(SIGHUP, SIG_IGN);
  forward(pair[0], listening, directory);
  _exit(0);
}

static bool print(const char *text, size_t length) {
  while (length > 0) {
    ssize_t wrote = write(STDOUT_FILENO, text, length);
    if (wrote < 0 && errno != EINTR) return false;
    if (wrote > 0) text += wrote, length -= (size_t)wrote;
  }
  return true;
}

static size_t to_base64(const uint8_t *bytes, size_t length, char *out) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  char *at = out;
  for (size_t i = 0; i < length; i += 3) {
    uint32_t three = (uint32_t)bytes[i] << 16 | (i + 1 < length ? (uint32_t)bytes[i + 1] << 8 : 0) | (i + 2 < length ? bytes[i + 2] : 0u);
    *at++ = digits[three >> 18];
    *at++ = digits[three >> 12 & 63];
    *at++ = i + 1 < length ? digits[three >> 6 & 63] : '=';
    *at++ = i + 2 < length ? digits[three & 63] : '=';
  }
  return (size_t)(at - out);
}

/* Prints `~` and the environment that commands find here. */
static bool print_environment(void) {
  static const char *const names[] = {"PATH", "HOME", "LANG", "USER", NULL};
  char text[8192], line[sizeof text * 2];
  size_t length = 0;
  for (const char *const *name = names; *name; name++) {
    const char *value = getenv(*name);
    if (!value || strlen(value) > 1900) continue;
    length += (size_t)snprintf(text + length, sizeof text - length, "%s=%s\n", *name, value);
  }
  line[0] = '~';
  size_t size = 1 + to_base64((const uint8_t *)text, length, line + 1);
  line[size++] = '\n';
  return print(line, size);
}

/* Reads what is there, at most a bundle. If that is much, waits a moment for more. 0: the end. */
static size_t read_bundle(int fd, uint8_t *bytes) {
  size_t length = 0;
  for (int flags = 0; length < MAX_BUNDLE; flags = MSG_DONTWAIT) {
    ssize_t got = recv(fd, bytes + length, MAX_BUNDLE - length, flags);
    if (got > 0) length += (size_t)got;
    else if (got == 0 || (errno != EAGAIN && errno != EINTR)) break;
    else if (errno == EAGAIN) {
      struct pollfd more = {.fd = fd, .events = POLLIN};
      if (length < PIECE || poll(&more, 1, BUNDLE_PAUSE) <= 0) break;
    }
  }
  return length;
}

/* Writes a bundle to a file. The host has read the one that had this name before, or it would not be sent more. */
static bool write_bundle(const char *directory, unsigned number, const uint8_t *bytes, size_t length) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "%s/out-%u", directory, number);
  unlink(path);
  int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
  if (fd < 0) return false;
  size_t done = 0;
  for (ssize_t wrote; done < length && (wrote = write(fd, bytes + done, length - done)) > 0;) done += (size_t)wrote;
  return close(fd) == 0 && done == length;
}

/* Prints a line for each piece: its position and its bytes, or the file that has them. An empty line is a heartbeat; `!` means
 * that there is no resident guest. */
static int print_answers(int fd, uint64_t position, const char *directory) {
  static uint8_t bytes[MAX_BUNDLE];
  static char line[PIECE * 2];
  uint8_t from[8];
  write_u64(from, position);
  if (send(fd, from, sizeof from, MSG_NOSIGNAL) != (ssize_t)sizeof from) return 1;
  for (;;) {
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    int count = poll(&ready, 1, HEARTBEAT);
    if (count == 0 && !print("\n", 1)) return 1;
    if (count <= 0) continue;
    size_t got = read_bundle(fd, bytes);
    if (got == 0) return 0;
    unsigned number = (unsigned)(position / MIN_BUNDLE % BUNDLE_NAMES);
    if (got >= MIN_BUNDLE && write_bundle(directory, number, bytes, got)) {
      int length = snprintf(line, sizeof line, "%llx @%u %zu\n", (unsigned long long)position, number, got);
      if (!print(line, (size_t)length)) return 1;
      position += got;
      continue;
    }
    for (size_t at = 0; at < got;) {
      size_t part = got - at < PIECE ? got - at : PIECE;
      size_t length = (size_t)snprintf(line, sizeof line, "%llx ", (unsigned long long)position);
      length += to_base64(bytes + at, part, line + length);
      line[length++] = '\n';
      if (!print(line, length)) return 1;
      position += part;
      at += part;
    }
  }
}

/* relay start|join NAME DIRECTORY MODE ROOT POSITION, or relay attach */
int relay_main(int argc, char **argv) {
  if (argc == 1 && strcmp(argv[0], "attach") == 0) return attach_main();
  if (argc != 6 || strlen(argv[1]) > 90) return 125;
  bool may_start = strcmp(argv[0], "start") == 0;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  /* An abstract name: the first to bind it is the resident one, and it disappears with its owner. */
  memcpy(address.sun_path + 1, argv[1], strlen(argv[1]));
  socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(argv[1]));
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return 125;
  if (may_start && bind(fd, (struct sockaddr *)&address, size) == 0) {
    mode_t mode = (mode_t)strtoul(argv[3], NULL, 8);
    if ((mkdir(argv[2], mode) != 0 && errno != EEXIST) || chmod(argv[2], mode) != 0 || listen(fd, 8) != 0) {
      fprintf(stderr, "glovebox: cannot use %s: %s\n", argv[2], strerror(errno));
      return 125;
    }
    pid_t pid = fork();
    if (pid < 0) return 125;
    if (pid == 0) become_resident(fd, argv[2], argv[4]);
    close(fd);
    if ((fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) < 0) return 125;
  }
  if (!print_environment()) return 1;
  if (connect(fd, (struct sockaddr *)&address, size) != 0) {
    print("!\n", 2);
    return 3;
  }
  return print_answers(fd, strtoull(argv[5], NULL, 10), argv[2]);
}
