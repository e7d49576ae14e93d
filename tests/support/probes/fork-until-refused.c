/* Forks until the system refuses, or the first argument's number of children is reached. Prints how many there are, and why no more. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
  int most = argc > 1 ? atoi(argv[1]) : 0, count = 0;
  for (; count < most; count++) {
    pid_t child = fork();
    if (child < 0) break;
    if (child == 0)
      for (;;) pause();
  }
  printf("%d %s\n", count, count < most ? strerror(errno) : "all");
  return 0;
}
