/* Steps the calendar clock of one program by an hour, to and fro, ten times a second, and tells who
   reads it: preloaded by the case FID-09. One octet a reading goes to PAUSEBED_STEP_LOG, and one at
   the start, which shows that it was loaded. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static int log_file = -1;

static void tell(char what) {
    if (log_file >= 0 && write(log_file, &what, 1) != 1) log_file = -1;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("PAUSEBED_STEP_LOG");
    if (path) log_file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    tell('l');
}

static long step(void) {
    struct timespec now;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
    return now.tv_nsec / 100000000 % 2 ? 3600 : -3600;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI)) {
        now->tv_sec += step();
        tell('r');
    }
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (now) *now = exact.tv_sec;
    return exact.tv_sec;
}
