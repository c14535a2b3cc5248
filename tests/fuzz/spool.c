// SPDX-License-Identifier: GPL-2.0-only
/*
 * `hyptrace recover` on a spool made by a recipe, beside a small fake of tracefs.
 * Whatever stands in the spool: nothing but the output and the spool changes.
 * Steps:
 *
 *   f N     a file: a row of `files`
 *   l N     a symbolic link in its place, to a file that must stay as it is
 *   d N     a directory in its place
 *   b       a file "session" whose boot_id is this machine's, behind these lines
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "recipe.h"

#include "../../cmd/cmd.h"
#include "base/array.h"
#include "base/files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const files[] = {
	"session",
	"undo",
	"buffers/0",
	"buffers/1",
	"buffers/2",
	"pages/0.0",
	"pages/0.1",
	"pages/1.0",
	"pages/2.0",
	"pages.new/0.0",
	"rewritten/0.0",
	"texts/header_page",
	"texts/header_event",
	"texts/formats",
	"texts/hyp_formats",
	"texts/hyp_reasons",
	"texts/options",
	"texts/saved_cmdlines",
	"texts/kallsyms",
	"texts/printk_formats",
	"texts/stat.0",
	"reserve",
	"pages",
	"texts",
	"buffers",
};

static const char *const tree[][2] = {
	{ "tracing_on", "0\n" },
	{ "trace_clock", "local [boot] mono\n" },
	{ "trace", "" },
	{ "buffer_size_kb", "64\n" },
	{ "buffer_subbuf_size_kb", "4\n" },
	{ "current_tracer", "nop\n" },
	{ "set_event", "" },
	{ "events/header_page", "" },
	{ "per_cpu/cpu0/trace_pipe_raw", "" },
	{ "per_cpu/cpu0/stats", "entries: 0\n" },
};

static char *below(const char *dir, const char *name)
{
	char *path = str_printf("%s/%s/%s", scratch_dir(), dir, name);

	if (!path)
		abort();
	return path;
}

/* The directories on the way there. */
static void make_parents(char *path)
{
	for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = 0;
		if (mkdir(path, 0700) && errno != EEXIST)
			errno = 0; /* a recipe made a file of it: what comes below is left out */
		*slash = '/';
	}
}

static void put_file(const char *dir, const char *name, const void *data, size_t len)
{
	char *path = below(dir, name);
	int fd;

	make_parents(path);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0) {
		if (write_all(fd, data, len))
			abort();
		close(fd);
	}
	free(path);
}

static void put_link(const char *name, bool to_dir)
{
	char *path = below("t.spool", name), *to = below("canary", to_dir ? "" : "file");

	make_parents(path);
	unlink(path);
	if (symlink(to, path))
		errno = 0;
	free(path);
	free(to);
}

static void put_dir(const char *name)
{
	char *path = below("t.spool", name);

	make_parents(path);
	if (mkdir(path, 0700))
		errno = 0;
	free(path);
}

static void put_session(const struct recipe_step *s)
{
	struct buf text = { 0 };

	buf_add(&text, s->data, s->len);
	buf_printf(&text, "\nboot_id\t");
	if (read_file("/proc/sys/kernel/random/boot_id", 1 << 20, &text))
		abort();
	put_file("t.spool", "session", text.data, text.len);
	buf_release(&text);
}

static void bake(const uint8_t *data, size_t size)
{
	struct recipe_step s;

	for (size_t i = 0; i < ARRAY_SIZE(tree); i++)
		put_file("tracing", tree[i][0], tree[i][1], strlen(tree[i][1]));
	put_file("canary", "file", "as it was", 9);
	put_dir("buffers");
	put_dir("pages");
	put_dir("texts");
	while (recipe_next(&data, &size, &s)) {
		const char *name = files[s.arg % ARRAY_SIZE(files)];

		if (s.key == 'f')
			put_file("t.spool", name, s.data, s.len);
		else if (s.key == 'l')
			put_link(name, s.len & 1);
		else if (s.key == 'd')
			put_dir(name);
		else if (s.key == 'b')
			put_session(&s);
	}
}

static void check_canary(void)
{
	char *path = below("canary", "file");
	struct buf now = { 0 };

	if (read_file(path, 64, &now) || now.len != 9 || memcmp(now.data, "as it was", 9))
		abort();
	buf_release(&now);
	free(path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *out = below(".", "out.dat"), *spool = below(".", "t.spool"), *tracing = below(".", "tracing");
	char *argv[] = { (char *)"recover", (char *)"-o", out, spool, NULL };
	int saved;

	bake(data, size);
	setenv("HYPTRACE_TRACING_DIR", tracing, 1);
	saved = quiet_begin();
	cmd_recover(4, argv);
	quiet_end(saved);
	check_canary();
	scratch_clear();
	free(out);
	free(spool);
	free(tracing);
	return 0;
}
