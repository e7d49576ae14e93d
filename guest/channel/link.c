#include "link.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../guest.h"

#define NAME "glovebox"
#define HEARTBEAT 5000        /* ms of silence after which we show that we are alive */
#define SILENCE 20000         /* ms after which a connection is given up on which nothing comes */
#define GREETING_PATIENCE 5000
#define FIRST_PATIENCE 60000  /* ms, or the lease if that is longer: how long the host may take to connect at all */
#define ACKNOWLEDGE_AFTER (256u << 10) /* bytes of letters */
#define MAX_LETTER (1u << 20)
#define LETTER_HEAD 16u       /* u32 number, u32 length of the rest, u64 position up to which the host has all answers */
#define PIECE_HEAD 16u        /* u32 length of its bytes, u32 number of the next letter, u64 position */
#define TOKEN_BYTES 32u
#define GREETING_BYTES (TOKEN_BYTES + 8) /* the token, u64 position from which the host wants answers, which may have CONTINUES and KEEPS */
#define CONTINUES (1ull << 63) /* the host was greeted before: its letters may have been read, and must not be read by another guest */
#define KEEPS (1ull << 62)     /* when the lease is over, the guest starts over instead of ending; the first greeting decides */
#define MAX_ENVIRONMENT (256u << 10)

enum { NO_LETTER = 0xffffffffu, LAST_LETTER = 0xfffffffeu };

extern char **environ;

bool linked;
static int listening = -1, peer = -1, newcomer = -1;
static bool is_kept, is_patient, has_token;
static uint8_t token[TOKEN_BYTES], greeting[GREETING_BYTES];
static size_t greeted; /* bytes of `greeting` that the newcomer has sent */
static int64_t lease, heard_at, peer_heard_at, spoke_at, newcomer_at;
static struct queue letters, wire; /* the start of a letter; what is written to the peer next */
static uint32_t next_letter;
static size_t unacknowledged;

socklen_t link_address(struct sockaddr_un *address) {
  *address = (struct sockaddr_un){.sun_family = AF_UNIX};
  /* An abstract name: no directory has to be writable, and it disappears with the guest. */
  memcpy(address->sun_path + 1, NAME, sizeof NAME - 1);
  return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + sizeof NAME);
}

int link_open(int64_t lease_ms, bool kept, bool warm) {
  struct sockaddr_un address;
  socklen_t size = link_address(&address);
  listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listening < 0 || bind(listening, (struct sockaddr *)&address, size) != 0 || listen(listening, 8) != 0) return -errno;
  linked = true;
  is_kept = kept;
  is_patient = kept || warm;
  lease = lease_ms;
  heard_at = now_ms();
  return 0;
}

static void close_connection(int *fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

static void drop_peer(void) {
  close_connection(&peer);
  letters.start = letters.end = wire.start = wire.end = 0;
}

/* Nobody here can have parent 0: whoever has was started from outside, through the container engine. */
static bool is_from_outside(int fd) {
  struct ucred who;
  socklen_t size = sizeof who;
  char path[32], text[512];
  /* A process of another container is not visible, and has no number. */
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) != 0 || who.pid <= 1 || who.uid != getuid()) return false;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)who.pid);
  FILE *stat = fopen(path, "re");
  if (!stat) return false;
  size_t length = fread(text, 1, sizeof text - 1, stat);
  fclose(stat);
  text[length] = 0;
  /* The name of a process can contain anything, so what follows it is found from its end. */
  const char *rest = strrchr(text, ')');
  int parent = -1;
  return rest && sscanf(rest + 1, " %*c %d", &parent) == 1 && parent == 0;
}

static void accept_newcomer(void) {
  int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd < 0) return;
  if (!is_from_outside(fd)) {
    close(fd);
    return;
  }
  close_connection(&newcomer);
  newcomer = fd;
  newcomer_at = now_ms();
  greeted = 0;
}

static bool is_token(const uint8_t *given) {
  uint8_t difference = 0;
  for (size_t i = 0; i < TOKEN_BYTES; i++) difference |= token[i] ^ given[i];
  return difference == 0;
}

/* u32 length of the rest, u32 version of the link, and the environment that commands find here, each variable with a zero byte. */
static void put_environment(void) {
  uint8_t head[8];
  size_t length = 4;
  for (char **at = environ; *at; at++) length += strlen(*at) + 1;
  bool fits = length <= MAX_ENVIRONMENT;
  write_u32(head, fits ? (uint32_t)length : 4);
  write_u32(head + 4, LINK_VERSION);
  queue_append(&wire, head, sizeof head);
  for (char **at = environ; fits && *at; at++) queue_append(&wire, *at, strlen(*at) + 1);
}

/* The first host to come brings the token, before anything else runs here. The others must have it. The newest connection replaces the old one. */
static void greet_newcomer(struct replay *out) {
  ssize_t got = read(newcomer, greeting + greeted, sizeof greeting - greeted);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0 && (greeted += (size_t)got) < sizeof greeting) return;
  /* A kept guest that has started over has no token, and must not take the host of the one before for a new one. */
  uint64_t position = load_u64(greeting + TOKEN_BYTES);
  bool known = got > 0 && (has_token ? is_token(greeting) : !(position & CONTINUES)) && replay_from(out, position & ~(CONTINUES | KEEPS));
  if (known) {
    if (!has_token) {
      memcpy(token, greeting, sizeof token);
      is_kept = is_kept || (position & KEEPS);
    }
    has_token = true;
    drop_peer();
    peer = newcomer;
    newcomer = -1;
    heard_at = peer_heard_at = now_ms();
    put_environment();
    unacknowledged = ACKNOWLEDGE_AFTER; /* so that the host learns which letters are here */
  } else {
    close_connection(&newcomer);
  }
  explicit_bzero(greeting, sizeof greeting);
}

/* False: the host has ended the channel. */
static bool take_letters(struct queue *incoming, struct replay *out) {
  ssize_t got = read(peer, queue_room(&letters, DATA_BYTES), DATA_BYTES);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
  if (got <= 0) {
    drop_peer();
    return true;
  }
  letters.end += (size_t)got;
  heard_at = peer_heard_at = now_ms();
  while (queue_length(&letters) >= LETTER_HEAD) {
    const uint8_t *letter = letters.data + letters.start;
    uint32_t number = load_u32(letter), length = load_u32(letter + 4);
    if (length < 8 || length > MAX_LETTER || (number < LAST_LETTER && number > next_letter)) {
      drop_peer();
      return true;
    }
    if (queue_length(&letters) < 8 + (size_t)length) return true;
    replay_confirm(out, load_u64(letter + 8));
    if (number == LAST_LETTER) return false;
    if (number == next_letter) {
      queue_append(incoming, letter + LETTER_HEAD, length - 8);
      next_letter++;
      unacknowledged += length;
    }
    queue_take(&letters, 8 + (size_t)length);
  }
  return true;
}

pid_t link_peer(void) {
  struct ucred who;
  socklen_t size = sizeof who;
  return peer >= 0 && getsockopt(peer, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 ? who.pid : 0;
}

void link_polls(struct pollfd *fds, const struct replay *out, bool has_room, bool sends) {
  bool writes = queue_length(&wire) > 0 || (sends && replay_unsent(out) > 0);
  fds[0] = (struct pollfd){.fd = listening, .events = POLLIN};
  fds[1] = (struct pollfd){.fd = newcomer, .events = POLLIN};
  fds[2] = (struct pollfd){.fd = peer, .events = (short)((has_room ? POLLIN : 0) | (writes ? POLLOUT : 0))};
}

bool link_ready(const struct pollfd *fds, struct queue *incoming, struct replay *out) {
  if (fds[2].revents & POLLIN) {
    if (!take_letters(incoming, out)) return false;
  } else if (fds[2].revents & (POLLHUP | POLLERR)) {
    drop_peer();
  }
  if (fds[1].revents) greet_newcomer(out);
  if (fds[0].revents) accept_newcomer();
  return true;
}

void link_send(struct replay *out) {
  while (peer >= 0) {
    while (queue_length(&wire) > 0) {
      ssize_t wrote = send(peer, wire.data + wire.start, queue_length(&wire), MSG_NOSIGNAL);
      if (wrote > 0) queue_take(&wire, (size_t)wrote);
      else if (errno == EAGAIN) return;
      else if (errno != EINTR) return drop_peer();
    }
    size_t piece = replay_unsent(out) < DATA_BYTES ? replay_unsent(out) : DATA_BYTES;
    if (piece == 0 && unacknowledged < ACKNOWLEDGE_AFTER && now_ms() - spoke_at < HEARTBEAT) return;
    uint8_t head[PIECE_HEAD];
    write_u32(head, (uint32_t)piece);
    write_u32(head + 4, next_letter);
    write_u64(head + 8, out->confirmed + out->sent);
    queue_append(&wire, head, sizeof head);
    queue_append(&wire, replay_next(out), piece);
    out->sent += piece;
    unacknowledged = 0;
    spoke_at = now_ms();
  }
}

bool link_is_kept(void) { return is_kept; }

static void sooner_than(int64_t *soonest, int64_t when) {
  if (when < *soonest) *soonest = when;
}

int link_timeout(void) {
  int64_t now = now_ms(), soonest = INT32_MAX + now;
  if (newcomer >= 0 && now - newcomer_at >= GREETING_PATIENCE) close_connection(&newcomer);
  if (peer >= 0 && now - peer_heard_at >= SILENCE) drop_peer();
  if (newcomer >= 0) sooner_than(&soonest, newcomer_at + GREETING_PATIENCE);
  if (peer >= 0) sooner_than(&soonest, peer_heard_at + SILENCE);
  /* While it takes nothing there is nothing to do for it, however long we have been silent. */
  if (peer >= 0 && queue_length(&wire) == 0) sooner_than(&soonest, spoke_at + HEARTBEAT);
  int64_t patience = has_token || lease > FIRST_PATIENCE ? lease : FIRST_PATIENCE;
  if (has_token || !is_patient) sooner_than(&soonest, heard_at + patience);
  if ((has_token || !is_patient) && now - heard_at >= patience) return -1;
  return soonest > now ? (int)(soonest - now) : 0;
}
