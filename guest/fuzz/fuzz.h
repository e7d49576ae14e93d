/* Feeds the guest what no honest host would send. Everything follows from the seed. */
#ifndef GLOVEBOX_FUZZ_H
#define GLOVEBOX_FUZZ_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdnoreturn.h>

#include "../guest.h"

/* Exit code of a process that a sanitizer ended; the runner sets it by ASAN_OPTIONS and UBSAN_OPTIONS. */
#define SANITIZER_EXIT 86
/* A case that takes longer hangs. */
#define CASE_SECONDS 30

uint32_t random_below(uint32_t bound);
bool one_in(uint32_t chances);
uint32_t interesting_number(void);
/* One to four changes: flips, wrong numbers, cuts, repetitions, insertions. */
void mutate(struct queue *bytes);
void append_u32(struct queue *to, uint32_t value);

/* Prints what happened in which case, and exits with 1. */
noreturn void broken(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* One case each. The root is the current directory of the world in main.c. */
void request_case(void);
void archive_case(void);
void report_requests(void);
void report_archives(void);

/* The last call of a stream. Its answer means that all others were handled. */
#define LAST_CALL 0xfffffff0u
/* A stream of request frames. False when the frames themselves were changed, so that any signal may be requested. */
bool make_requests(struct queue *out);
/* Checks the guest's answers, as far as they are complete. */
struct observed {
  struct queue bytes;
  uint32_t sequence;
  bool signals_known, last;
};
void observe_answers(struct observed *seen);
#endif
