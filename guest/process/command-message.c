/* A command as a message over a socket: its descriptors, then its argv and environment as zero-terminated strings. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../guest.h"

/* A larger command does not go to a pooled supervisor: the guest must not be blocked by a slow reader. */
#define MAX_COMMAND_BYTES (48u << 10)

struct message_head {
  uint32_t length, arguments, variables;
  uint32_t terminal, identity; /* an identity comes before the strings */
  uint32_t placed;             /* the last string is its place */
  uint32_t is_self_test;       /* instead of a program; there are no strings */
};

static uint32_t add_strings(struct queue *to, char *const *strings) {
  uint32_t count = 0;
  for (; strings[count]; count++) queue_append(to, strings[count], strlen(strings[count]) + 1);
  return count;
}

bool fits_command_message(const struct command *command) {
  size_t length = 0;
  if (command->builtin) return command->builtin == self_test;
  for (char **at = command->argv; *at; at++) length += strlen(*at) + 1;
  for (char **at = command->env; *at; at++) length += strlen(*at) + 1;
  if (command->place) length += strlen(command->place) + 1;
  return length <= MAX_COMMAND_BYTES;
}

bool send_command(int socket, const struct command *command) {
  struct queue strings = {0};
  struct message_head head = {.terminal = command->terminal, .identity = command->as != NULL, .placed = command->place != NULL};
  head.is_self_test = command->builtin == self_test;
  if (!head.is_self_test) head.arguments = add_strings(&strings, command->argv);
  if (!head.is_self_test) head.variables = add_strings(&strings, command->env);
  if (command->place) queue_append(&strings, command->place, strlen(command->place) + 1);
  head.length = (uint32_t)queue_length(&strings);
  union {
    char bytes[CMSG_SPACE(COMMAND_DESCRIPTORS * sizeof(int))];
    struct cmsghdr align;
  } control = {0};
  size_t described = command->as ? sizeof *command->as : 0;
  struct iovec parts[] = {{&head, sizeof head}, {(void *)(uintptr_t)command->as, described}, {strings.data, head.length}};
  struct msghdr message = {.msg_iov = parts, .msg_iovlen = 3, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(COMMAND_DESCRIPTORS * sizeof(int));
  int fds[COMMAND_DESCRIPTORS] = {command->in, command->out, command->err, command->cwd};
  memcpy(CMSG_DATA(rights), fds, sizeof fds);
  bool sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)(sizeof head + described + head.length);
  free(strings.data);
  return sent;
}

static bool receive_bytes(int socket, void *to, size_t length) {
  for (size_t at = 0; at < length;) {
    ssize_t got = recv(socket, (uint8_t *)to + at, length - at, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += (size_t)got;
  }
  return true;
}

static char **split(char *strings, uint32_t count, const char *end, char **next) {
  char **list = calloc((size_t)count + 1, sizeof *list);
  if (!list) return NULL;
  for (uint32_t i = 0; i < count && strings < end; i++) {
    list[i] = strings;
    strings += strlen(strings) + 1;
  }
  *next = strings;
  return list;
}

bool receive_command(int socket, struct command *command, struct identity *as, int fds[COMMAND_DESCRIPTORS]) {
  struct message_head head;
  union {
    char bytes[CMSG_SPACE(COMMAND_DESCRIPTORS * sizeof(int))];
    struct cmsghdr align;
  } control;
  struct iovec part = {&head, sizeof head};
  struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
  ssize_t got;
  do got = recvmsg(socket, &message, MSG_WAITALL | MSG_CMSG_CLOEXEC);
  while (got < 0 && errno == EINTR);
  struct cmsghdr *rights = got == sizeof head ? CMSG_FIRSTHDR(&message) : NULL;
  if (!rights || rights->cmsg_len != CMSG_LEN(COMMAND_DESCRIPTORS * sizeof(int)) || head.length > MAX_COMMAND_BYTES) return false;
  memcpy(fds, CMSG_DATA(rights), COMMAND_DESCRIPTORS * sizeof(int));
  if (head.identity && !receive_bytes(socket, as, sizeof *as)) return false;
  command->as = head.identity ? as : NULL;
  if (head.is_self_test) {
    command->builtin = self_test;
    return true;
  }
  char *strings = malloc((size_t)head.length + 1);
  if (!strings || !receive_bytes(socket, strings, head.length)) return false;
  strings[head.length] = 0;
  char *next;
  command->argv = split(strings, head.arguments, strings + head.length, &next);
  command->env = split(next, head.variables, strings + head.length, &next);
  command->place = head.placed && next < strings + head.length ? next : NULL;
  command->terminal = head.terminal != 0;
  return command->argv && command->argv[0] && command->env;
}

void free_received(struct command *command) {
  if (!command->argv) return;
  free(command->argv[0]); /* the first of all the strings */
  free(command->argv);
  free(command->env);
}
