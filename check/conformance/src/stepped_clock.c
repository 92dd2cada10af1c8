/* Steps the calendar clock of a program, as if the host's had been stepped; preloaded (stepped_clock.rs).
   PAUSEBED_STEPS: nanoseconds that each offset lasts, then the offsets from the true clock. CLOCK_MONOTONIC chooses the
   offset, so that all programs of a host step at once. Time stamps of received packets are of the stepped clock too.
   PAUSEBED_STEP_LOG: a file that gets an octet when the library is loaded, and one each time the clock is read.
   PAUSEBED_STEP_ONLY: the program whose command line contains this word; all if it is not set. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define OFFSETS_MAX 64

static int log_file = -1, offsets = 0;
static long long lasts = 1, offset[OFFSETS_MAX];

static void tell(char what) {
    if (log_file >= 0 && write(log_file, &what, 1) != 1) log_file = -1;
}

static int is_meant(const char *word) {
    char line[4096];
    int file = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? 0 : read(file, line, sizeof line);
    if (file >= 0) close(file);
    return length > 0 && memmem(line, length, word, strlen(word));
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("PAUSEBED_STEP_LOG"), *steps = getenv("PAUSEBED_STEPS"), *only = getenv("PAUSEBED_STEP_ONLY");
    if (!steps || (only && !is_meant(only))) return;
    char *rest;
    for (lasts = strtoll(steps, &rest, 10); *rest && offsets < OFFSETS_MAX;) offset[offsets++] = strtoll(rest, &rest, 10);
    if (path) log_file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    tell('l');
}

static long long true_ns(clockid_t clock) {
    struct timespec now;
    syscall(SYS_clock_gettime, clock, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}

static void add(struct timespec *time, long long monotonic_ns) {
    if (offsets == 0 || monotonic_ns < 0) return;
    long long ns = time->tv_sec * SECOND + time->tv_nsec + offset[monotonic_ns / lasts % offsets];
    time->tv_sec = ns / SECOND;
    time->tv_nsec = ns % SECOND;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, clock, now);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE || clock == CLOCK_TAI)) {
        add(now, true_ns(CLOCK_MONOTONIC));
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

/* The kernel stamps a packet with the offset of the moment at which it comes. */
int recvmmsg(int socket, struct mmsghdr *messages, unsigned int most, int flags, struct timespec *within) {
    int count = syscall(SYS_recvmmsg, socket, messages, most, flags, within);
    long long apart = true_ns(CLOCK_REALTIME) - true_ns(CLOCK_MONOTONIC);
    for (int at = 0; at < count; at++) {
        struct msghdr *header = &messages[at].msg_hdr;
        for (struct cmsghdr *one = CMSG_FIRSTHDR(header); one; one = CMSG_NXTHDR(header, one)) {
            if (one->cmsg_level != SOL_SOCKET || one->cmsg_type != SCM_TIMESTAMPNS) continue;
            struct timespec stamp;
            memcpy(&stamp, CMSG_DATA(one), sizeof stamp);
            add(&stamp, stamp.tv_sec * SECOND + stamp.tv_nsec - apart);
            memcpy(CMSG_DATA(one), &stamp, sizeof stamp);
        }
    }
    return count;
}
