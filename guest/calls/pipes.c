/* The pipes or the terminal of a call: the command's ends and ours. */
#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "../guest.h"

static void set_nonblocking(int fd) {
  if (fd >= 0) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

static void close_all(const int *fds, int count) {
  for (int i = 0; i < count; i++)
    if (fds[i] >= 0) close(fds[i]);
}

int open_terminal(struct command *command, uint16_t cols, uint16_t rows, struct ends *ours) {
  int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (master < 0) return -errno;
  int unlock = 0, slave = -1, writer = -1;
  struct winsize size = {.ws_col = cols, .ws_row = rows};
  if (ioctl(master, TIOCSPTLCK, &unlock) == 0 && ioctl(master, TIOCSWINSZ, &size) == 0)
    slave = ioctl(master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (slave >= 0) writer = fcntl(master, F_DUPFD_CLOEXEC, 0);
  if (writer < 0) {
    int error = errno, fds[] = {master, slave};
    close_all(fds, 2);
    return -error;
  }
  command->in = command->out = command->err = slave;
  command->terminal = true;
  *ours = (struct ends){.in = writer, .out = master, .err = -1};
  set_nonblocking(master);
  return 0;
}

int open_pipes(struct command *command, bool with_stdin, struct ends *ours) {
  enum { IN, IN_OURS, OUT_OURS, OUT, ERR_OURS, ERR, COUNT };
  int fds[COUNT] = {-1, -1, -1, -1, -1, -1};
  bool made = with_stdin ? pipe2(fds + IN, O_CLOEXEC) == 0 : (fds[IN] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;
  if (!made || pipe2(fds + OUT_OURS, O_CLOEXEC) != 0 || (!command->combined && pipe2(fds + ERR_OURS, O_CLOEXEC) != 0)) {
    int error = errno;
    close_all(fds, COUNT);
    return -error;
  }
  command->in = fds[IN];
  command->out = fds[OUT];
  command->err = command->combined ? fds[OUT] : fds[ERR];
  *ours = (struct ends){.in = fds[IN_OURS], .out = fds[OUT_OURS], .err = fds[ERR_OURS]};
  set_nonblocking(ours->in);
  set_nonblocking(ours->out);
  set_nonblocking(ours->err);
  return 0;
}

void close_command_ends(const struct command *command) {
  close(command->in);
  if (command->out != command->in) close(command->out);
  if (command->err != command->out) close(command->err);
}
