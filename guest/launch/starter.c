/* Starts sandboxes for a host. A fork copies the tables of all of a process's memory, and the host's can be large; this process is small. When
 * the host closes the orders it ends, and what it has started ends with it, as it would with the host. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../guest.h"

enum { ORDERS = 0, NOTICES = 1, FIRST_CHANNEL = 3, MAX_SLOTS = 64, MAX_ORDER = 4 << 20 };

/* The host writes a header and then the strings, each with its zero byte. */
struct order {
  uint32_t size; /* of the strings */
  uint8_t kind, slot;
  uint8_t reports_end; /* the program says on its descriptor 4 when all has ended */
  uint8_t unused;
  uint16_t argument_count, variable_count;
};
enum { START = 1, KILL };

struct notice {
  uint32_t size; /* of what follows */
  uint8_t kind, slot;
  uint8_t unused[2];
};
enum { STARTED = 1, NOT_STARTED, COMPLAINT, REPORT, ENDED };

/* Its number is that of a channel's end, which is used once. */
static struct slot {
  pid_t pid;
  int complaints, reports; /* what it prints on its descriptors 2 and 4 */
} slots[MAX_SLOTS];
static int slot_count;

static bool read_all(void *into, size_t size) {
  for (uint8_t *at = into; size > 0;) {
    ssize_t got = read(ORDERS, at, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    size -= (size_t)got;
  }
  return true;
}

static void tell(uint8_t kind, int slot, const void *what, size_t size) {
  uint8_t message[sizeof(struct notice) + 4096];
  struct notice head = {.size = (uint32_t)size, .kind = kind, .slot = (uint8_t)slot};
  memcpy(message, &head, sizeof head);
  if (size > 0) memcpy(message + sizeof head, what, size);
  size += sizeof head;
  for (size_t sent = 0; sent < size;) {
    ssize_t put = write(NOTICES, message + sent, size - sent);
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) _exit(0); /* the host is gone */
    sent += (size_t)put;
  }
}

/* Passes on what a program has printed, or a part of it; false if there is nothing. Closes the descriptor at its end. */
static bool pass_on(uint8_t kind, int slot, int *from) {
  char text[4096];
  ssize_t got = *from < 0 ? -1 : read(*from, text, sizeof text);
  if (got > 0) tell(kind, slot, text, (size_t)got);
  if (got == 0) {
    close(*from);
    *from = -1;
  }
  return got > 0;
}

/* Of a program that has ended. The host wants no more than its first words. */
static void pass_on_last(uint8_t kind, int slot, int *from) {
  for (int times = 0; times < 4 && pass_on(kind, slot, from); times++) continue;
  close(*from);
}

static void become_program(char **argv, char **env, int channel, int complaints, int reports) {
  int empty = open("/dev/null", O_RDWR | O_CLOEXEC);
  int fds[] = {empty, empty, complaints, channel, reports};
  if (empty < 0 || !arrange_descriptors(fds, reports < 0 ? 4 : 5)) _exit(127);
  setsid();
  for (int number = 1; number < NSIG; number++) signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (chdir("/") == 0) execve(argv[0], argv, env);
  dprintf(2, "cannot run %s: %s\n", argv[0], strerror(errno));
  _exit(127);
}

/* Returns 0, or what failed as an errno. */
static int start(const struct order *order, char **argv, char **env) {
  struct slot *it = &slots[order->slot];
  int channel = FIRST_CHANNEL + order->slot, complaints[2], reports[2] = {-1, -1};
  if (pipe2(complaints, O_CLOEXEC) != 0) return errno;
  int error = order->reports_end && pipe2(reports, O_CLOEXEC) != 0 ? errno : 0;
  pid_t pid = error ? -1 : fork();
  if (pid == 0) become_program(argv, env, channel, complaints[1], reports[1]);
  if (pid < 0 && !error) error = errno;
  close(complaints[1]);
  close(reports[1]);
  close(channel);
  if (error) {
    close(complaints[0]);
    close(reports[0]);
    return error;
  }
  fcntl(complaints[0], F_SETFL, O_NONBLOCK);
  fcntl(reports[0], F_SETFL, O_NONBLOCK);
  *it = (struct slot){.pid = pid, .complaints = complaints[0], .reports = reports[0]};
  return 0;
}

/* The host and this program belong together, so an order that makes no sense is the end. */
static void obey(void) {
  struct order order;
  if (!read_all(&order, sizeof order) || order.size > MAX_ORDER || order.slot >= slot_count) _exit(0);
  struct slot *it = &slots[order.slot];
  if (order.kind == KILL && it->pid > 0) kill(it->pid, SIGKILL);
  if (order.kind != START) return;
  size_t count = (size_t)order.argument_count + order.variable_count;
  char *text = malloc(order.size + 1u), **words = calloc(count + 2, sizeof *words);
  if (!text || !words || !read_all(text, order.size) || order.argument_count == 0) _exit(0);
  char *at = text, *end = text + order.size;
  *end = 0;
  for (size_t i = 0; i < count; i++) {
    words[i + (i >= order.argument_count)] = at < end ? at : end;
    at += at < end ? strlen(at) + 1 : 0;
  }
  int error = start(&order, words, words + order.argument_count + 1);
  int32_t answer = error ? error : it->pid;
  tell(error ? NOT_STARTED : STARTED, order.slot, &answer, sizeof answer);
  free(text);
  free(words);
}

static void handle_ends(int signals) {
  struct signalfd_siginfo info;
  if (read(signals, &info, sizeof info) < 0) errno = 0;
  for (pid_t pid; (pid = waitpid(-1, NULL, WNOHANG)) > 0;) {
    for (int i = 0; i < slot_count; i++) {
      struct slot *it = &slots[i];
      if (it->pid != pid) continue;
      pass_on_last(COMPLAINT, i, &it->complaints);
      pass_on_last(REPORT, i, &it->reports);
      *it = (struct slot){.complaints = -1, .reports = -1};
      tell(ENDED, i, NULL, 0);
    }
  }
}

/* starter COUNT: descriptors 3 and up are COUNT ends of channels, one for each program that it will be asked to start. */
int starter_main(int argc, char **argv) {
  slot_count = argc == 1 ? atoi(argv[0]) : 0;
  if (slot_count < 1 || slot_count > MAX_SLOTS) return 125;
  close_from((unsigned)(FIRST_CHANNEL + slot_count));
  struct pollfd fds[2 + 2 * MAX_SLOTS] = {{.fd = ORDERS, .events = POLLIN}};
  for (int i = 0; i < slot_count; i++) {
    slots[i] = (struct slot){.complaints = -1, .reports = -1};
    fcntl(FIRST_CHANNEL + i, F_SETFD, FD_CLOEXEC);
  }
  sigset_t children;
  sigemptyset(&children);
  sigaddset(&children, SIGCHLD);
  sigprocmask(SIG_SETMASK, &children, NULL);
  fds[1] = (struct pollfd){.fd = signalfd(-1, &children, SFD_CLOEXEC | SFD_NONBLOCK), .events = POLLIN};
  for (;;) {
    for (int i = 0; i < slot_count; i++) {
      fds[2 + 2 * i] = (struct pollfd){.fd = slots[i].complaints, .events = POLLIN};
      fds[3 + 2 * i] = (struct pollfd){.fd = slots[i].reports, .events = POLLIN};
    }
    if (poll(fds, (nfds_t)(2 + 2 * slot_count), -1) < 0) {
      if (errno == EINTR) continue;
      return 125;
    }
    for (int i = 0; i < slot_count; i++) {
      if (fds[2 + 2 * i].revents) pass_on(COMPLAINT, i, &slots[i].complaints);
      if (fds[3 + 2 * i].revents) pass_on(REPORT, i, &slots[i].reports);
    }
    if (fds[1].revents) handle_ends(fds[1].fd);
    if (fds[0].revents) obey();
  }
}
