#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

/*
 * Preloaded by under-clock.ts: adds CLOCK_OFFSET seconds to the time of day. Monotonic clocks, and so time-outs, stay real.
 * If it is a path, the seconds are the first 8 bytes of that file, and writing it moves the clock of running processes. Where the
 * file has 24 bytes, two more numbers slow the clock down: from the real second `from` on, it runs `divisor` times slower. Two
 * runs then see the same minute, although one of them takes longer (same-figures).
 *
 * libfaketime does more, and too much: it gives the real time to a signal handler that interrupts a wait. Postgres reads
 * the time there, so none of its time-outs would end.
 */

static time_t given[3];
static const volatile time_t *settings = given;

__attribute__((constructor)) static void start(void) {
  const char *text = getenv("CLOCK_OFFSET");
  if (!text) return;
  if (*text != '/') {
    given[0] = atoll(text);
    return;
  }
  int file = open(text, O_RDONLY | O_CLOEXEC);
  void *shared = file < 0 ? MAP_FAILED : mmap(NULL, sizeof given, PROT_READ, MAP_SHARED, file, 0);
  // A process with the real time would pass for one with the moved time.
  if (shared == MAP_FAILED) abort();
  close(file);
  settings = shared;
}

int clock_gettime(clockid_t id, struct timespec *at) {
  int failed = syscall(SYS_clock_gettime, id, at);
  if (failed || (id != CLOCK_REALTIME && id != CLOCK_REALTIME_COARSE)) return failed;
  time_t from = settings[1], divisor = settings[2];
  if (divisor > 1) {
    int64_t passed = ((at->tv_sec - from) * 1000000000LL + at->tv_nsec) / divisor;
    at->tv_sec = from + passed / 1000000000LL;
    at->tv_nsec = passed % 1000000000LL;
  }
  at->tv_sec += settings[0];
  return failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *at) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (at) *at = now.tv_sec;
  return now.tv_sec;
}

int timespec_get(struct timespec *at, int base) {
  return clock_gettime(CLOCK_REALTIME, at) ? 0 : base;
}
