/* A machine's clock that differs by the seconds that a file says; for LD_PRELOAD.
 *
 * The file is read again each second, so that the clock may step while the process runs. Only the
 * clock of the day is moved: the monotonic one of a machine doesn't step. libfaketime 0.9.10, which
 * Debian has, breaks time.sleep() of Python 3.11. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static time_t ahead(time_t now)
{
	static volatile time_t read_at, seconds;
	const char *name = getenv("MOVED_CLOCK_FILE");
	if (name && now != read_at) {
		char text[32] = {0};
		int file = open(name, O_RDONLY | O_CLOEXEC);
		if (file >= 0) {
			if (read(file, text, sizeof text - 1) > 0)
				seconds = atol(text);
			close(file);
		}
		read_at = now;
	}
	return seconds;
}

int clock_gettime(clockid_t which, struct timespec *at)
{
	long failed = syscall(SYS_clock_gettime, which, at);
	if (!failed && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE))
		at->tv_sec += ahead(at->tv_sec);
	return (int)failed;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
	struct timespec now;
	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	at->tv_sec = now.tv_sec;
	at->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *at)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	if (at)
		*at = now.tv_sec;
	return now.tv_sec;
}
