// SPDX-License-Identifier: GPL-2.0-only
/* How commands that look at a recording that goes on wait for its begin. */
#include <errno.h>
#include <unistd.h>

#include "cmd.h"
#include "live/live.h"

#define WAIT_MS 10000
#define STEP_MS 50
#define PAST_NS 10000000000

static int live_skip_past(struct live *l, const char *output, const struct log *log)
{
	bool ended;
	int ret = live_look(l, &ended);

	if (ret > 0)
		ret = live_drop_older(l, PAST_NS);
	if (ret > 0)
		log_info(log, "%s: what it recorded more than ten seconds ago is left out here", output);
	return ret < 0 ? ret : 0;
}

int live_wait(struct live **out, const char *output, const struct log *log)
{
	int ret;

	for (int waited = 0;; waited += STEP_MS) {
		ret = live_open(out, output, log);
		/* a recorder that was just started has made nothing yet */
		if ((ret != -EAGAIN && ret != -ENOENT) || waited >= WAIT_MS)
			break;
		usleep(STEP_MS * 1000);
	}
	if (ret == -ENOENT || ret == -EAGAIN)
		log_err(log, "'%s' is not being recorded: start `hyptrace record -o %s` first", output,
			output);
	else if (ret)
		log_err(log, "cannot read the recording '%s': %s", output, errno_text(ret));
	if (ret)
		return ret;
	ret = live_skip_past(*out, output, log);
	if (ret)
		live_close(*out);
	return ret;
}
