// SPDX-License-Identifier: GPL-2.0
/* Groups of counters: their values at a time, and the lines that change them (see main.c). */
#include <linux/math64.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "fsnic.h"

/* Keeps products in 64 bits for weeks. */
#define PER_MS_MAX (1ULL << 32)
#define MS_MAX 1000000000ULL
#define DELAY_US_MAX 1000000
#define NAMES_MAX 512

static const struct {
	const char *name;
	int number;
} errors[] = {
	{ "EPERM", EPERM }, { "ENOENT", ENOENT }, { "EIO", EIO }, { "ENXIO", ENXIO }, { "EAGAIN", EAGAIN },
	{ "ENOMEM", ENOMEM }, { "EACCES", EACCES }, { "EBUSY", EBUSY }, { "ENODEV", ENODEV }, { "EINVAL", EINVAL },
	{ "EOPNOTSUPP", EOPNOTSUPP }, { "ETIMEDOUT", ETIMEDOUT }, { "EREMOTEIO", EREMOTEIO },
};

/* The value at a time: before since_ns it is that of since_ns. */
u64 counter_at(const struct counter *counter, u64 now_ns)
{
	u64 elapsed = now_ns > counter->since_ns ? now_ns - counter->since_ns : 0;
	u64 value = counter->value;
	u64 greatest;

	if (counter->per_ms) {
		u64 on = counter->on_ms * NSEC_PER_MSEC;
		u64 periods, rest, rest_ms, active;

		if (counter->for_ms)
			elapsed = min(elapsed, counter->for_ms * NSEC_PER_MSEC);
		periods = div64_u64_rem(elapsed, counter->period_ms * NSEC_PER_MSEC, &rest);
		active = periods * on + min(rest, on);
		active = div64_u64_rem(active, NSEC_PER_MSEC, &rest_ms);
		value += active * counter->per_ms + div64_u64(rest_ms * counter->per_ms, NSEC_PER_MSEC);
	}
	if (counter->bits >= 64)
		return value;
	greatest = (1ULL << counter->bits) - 1;
	return counter->saturates ? min(value, greatest) : value & greatest;
}

u64 counter_now(struct group *group, unsigned int index)
{
	u64 value;

	spin_lock(&group->lock);
	value = counter_at(&group->counters[index], ktime_get_ns());
	spin_unlock(&group->lock);
	return value;
}

/* For the statistics that the kernel leaves out unless a driver sets them. */
void counter_report(struct group *group, unsigned int index, u64 *into)
{
	if (!READ_ONCE(group->counters[index].hidden))
		*into = counter_now(group, index);
}

void counter_set(struct group *group, unsigned int index, u64 value)
{
	spin_lock(&group->lock);
	group->counters[index].value = value;
	group->counters[index].per_ms = 0;
	group->counters[index].since_ns = ktime_get_ns();
	spin_unlock(&group->lock);
}

/* The error, negative, that every read of the group ends with, or 0. */
int group_fails(struct group *group)
{
	return -READ_ONCE(group->error);
}

int counter_fails(struct group *group, unsigned int index)
{
	return -READ_ONCE(group->counters[index].error);
}

bool group_has_failing(struct group *group)
{
	unsigned int i;

	for (i = 0; i < group->count; i++)
		if (counter_fails(group, i))
			return true;
	return group_fails(group);
}

/* Takes as long as a read of the group is to take. */
void group_wait(struct group *group)
{
	unsigned int delay = READ_ONCE(group->delay_us);

	if (delay)
		usleep_range(delay, delay + 50);
}

static void name_counter(struct counter *counter, const char *pattern, size_t length, char digit)
{
	const char *hole = strnstr(pattern, "%d", length);

	if (hole)
		snprintf(counter->name, sizeof(counter->name), "%.*s%c%.*s", (int)(hole - pattern), pattern, digit,
			 (int)(pattern + length - hole - 2), hole + 2);
	else
		snprintf(counter->name, sizeof(counter->name), "%.*s", (int)length, pattern);
	counter->bits = 64;
	counter->pause = PAUSE_NONE;
}

/* Makes a group's counters: names with commas between them, %d standing for 0 to 7. */
int group_init(struct group *group, const char *names)
{
	const char *name;
	size_t length;

	spin_lock_init(&group->lock);
	group->counters = kcalloc(NAMES_MAX, sizeof(*group->counters), GFP_KERNEL);
	if (!group->counters)
		return -ENOMEM;
	for (name = names; *name; name += length + (name[length] == ',')) {
		bool each;
		char digit;

		length = strcspn(name, ",");
		each = strnstr(name, "%d", length);
		for (digit = '0'; digit < (each ? '0' + PRIORITIES : '1'); digit++) {
			if (group->count == NAMES_MAX)
				return -E2BIG;
			name_counter(&group->counters[group->count++], name, length, digit);
		}
	}
	return 0;
}

void group_free(struct group *group)
{
	kfree(group->counters);
}

static struct counter *find(struct group *group, const char *name)
{
	unsigned int i;

	for (i = 0; i < group->count; i++)
		if (!strcmp(group->counters[i].name, name))
			return &group->counters[i];
	return NULL;
}

/* A number of the line's next word, at most `most`; `standard` when there is none. */
static int number(char **line, u64 most, u64 standard, u64 *into)
{
	char *word = strsep(line, " ");
	int error;

	if (!word) {
		*into = standard;
		return 0;
	}
	error = kstrtou64(word, 0, into);
	if (!error && *into > most)
		error = -ERANGE;
	return error;
}

static int needed(char **line, u64 most, u64 *into)
{
	return *line ? number(line, most, 0, into) : -EINVAL;
}

static int error_number(char **line, int *into)
{
	char *word = strsep(line, " ");
	unsigned int i;
	int error;

	if (!word)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		if (!strcmp(errors[i].name, word)) {
			*into = errors[i].number;
			return 0;
		}
	}
	error = kstrtoint(word, 0, into);
	return error ? error : *into < 0 || *into > MAX_ERRNO ? -ERANGE : 0;
}

/* Growth so far becomes part of the value. */
static void settle(struct counter *counter, u64 now_ns)
{
	counter->value = counter_at(counter, now_ns);
	counter->since_ns = now_ns;
}

static int ramp(struct counter *counter, char *line, u64 now_ns)
{
	u64 per_ms, on_ms, period_ms, for_ms;
	int error = needed(&line, PER_MS_MAX, &per_ms);

	error = error ? error : number(&line, MS_MAX, 1, &on_ms);
	error = error ? error : number(&line, MS_MAX, on_ms, &period_ms);
	error = error ? error : number(&line, MS_MAX, 0, &for_ms);
	if (error || line || !period_ms || on_ms > period_ms)
		return error ? error : -EINVAL;
	settle(counter, now_ns);
	counter->per_ms = per_ms;
	counter->on_ms = on_ms;
	counter->period_ms = period_ms;
	counter->for_ms = for_ms;
	return 0;
}

static int fail(struct group *group, char *line)
{
	const char *name = strsep(&line, " ");
	struct counter *counter;
	int number;
	int error = error_number(&line, &number);

	if (error || line)
		return error ? error : -EINVAL;
	if (!strcmp(name, "*")) {
		if (!(group->may & MAY_FAIL))
			return -EOPNOTSUPP;
		WRITE_ONCE(group->error, number);
		return 0;
	}
	counter = find(group, name);
	if (!counter)
		return -ENOENT;
	if (!(group->may & MAY_FAIL_EACH))
		return -EOPNOTSUPP;
	WRITE_ONCE(counter->error, number);
	return 0;
}

static int change(struct group *group, const char *verb, char *line, u64 now_ns)
{
	struct counter *counter = find(group, strsep(&line, " "));
	bool wraps = !strcmp(verb, "wrap");
	int error;
	u64 value;

	if (!counter)
		return -ENOENT;
	if (!strcmp(verb, "ramp"))
		return ramp(counter, line, now_ns);
	if (!strcmp(verb, "hide") || !strcmp(verb, "show")) {
		if (!(group->may & MAY_HIDE))
			return -EOPNOTSUPP;
		WRITE_ONCE(counter->hidden, *verb == 'h');
		return line ? -EINVAL : 0;
	}
	error = needed(&line, wraps || !strcmp(verb, "saturate") ? 64 : U64_MAX, &value);
	if (error || line)
		return error ? error : -EINVAL;
	if (!strcmp(verb, "add")) {
		counter->value += value;
	} else if (!value) {
		return -ERANGE;
	} else {
		counter->bits = value;
		counter->saturates = !wraps;
	}
	return 0;
}

/* Does what a line says, under the group's lock. now_ns is the line's time; `at` changes it. */
int group_line(struct group *group, char *line, u64 *now_ns)
{
	static const char *const verbs[] = { "add", "ramp", "wrap", "saturate", "hide", "show" };
	const char *word = strsep(&line, " ");
	struct counter *counter;
	u64 value;
	int error;

	if (!line)
		return -EINVAL;
	if (match_string(verbs, ARRAY_SIZE(verbs), word) >= 0)
		return change(group, word, line, *now_ns);
	if (!strcmp(word, "fail"))
		return fail(group, line);
	counter = find(group, word);
	error = needed(&line, strcmp(word, "delay") ? U64_MAX : DELAY_US_MAX, &value);
	if (error || line)
		return error ? error : -EINVAL;
	if (!strcmp(word, "at")) {
		*now_ns = value;
	} else if (!strcmp(word, "delay")) {
		WRITE_ONCE(group->delay_us, value);
	} else if (counter) {
		counter->value = value;
		counter->since_ns = *now_ns;
		counter->per_ms = 0;
	} else {
		return -ENOENT;
	}
	return 0;
}
