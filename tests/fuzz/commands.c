// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whole commands on files made by a recipe, as the program runs them: the input's sum chooses which.
 */
#include "draft.h"

#include "../../cmd/cmd.h"
#include "../leaks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* FILE0, FILE1, TEXT, OUT and TABLES stand for paths. */
static const char *const lines[] = {
	"report -N -i FILE0",
	"report -N -i FILE0 -i FILE1",
	"report -N -R --ts-diff --ts-check -i FILE0",
	"report -N -l -w --raw-ts -i FILE0",
	"report -N -F sched_switch:prev_pid>0 -F .*:common_pid!=3 -i FILE0",
	"report -N -n kvm --cpu 0-1 --nodate -i FILE0",
	"report -N --stat -i FILE0",
	"report -N --cpus --first-event --last-event -i FILE0",
	"report -N --events -i FILE0",
	"report -N --check-events -i FILE0",
	"report -N -f -i FILE0",
	"report -N -P -i FILE0",
	"report -N --uname --version -i FILE0",
	"stat FILE0 FILE1",
	"stat --json --per vcpu --by 10ms --svg OUT FILE0",
	"latency --from kvm_exit/ret!=0 --to kvm_entry --key vcpu --worst 3 --svg OUT FILE0 FILE1",
	"latency --from sched_switch --to sched_switch --key prev_pid=next_pid --csv FILE0",
	"latency --preset wakeup --json FILE0 FILE1",
	"latency --preset virtio FILE0",
	"export --json FILE0 FILE1",
	"export --perfetto OUT FILE0 FILE1",
	"export --parquet TABLES FILE0 FILE1",
	"flame FILE0 FILE1",
	"flame -w ns --idle --pids -e .* --svg OUT --json FILE0 FILE1",
	"flame --diff --svg OUT FILE0 FILE1",
	"sql FILE0 FILE1 select*from(events);select*from(hyp_calls);select*from(kvm_exits);",
	"sql --json FILE0 select*from(args);select*from(lost);select*from(clocks),machines,vcpus;"
	"select*from(slices)where(id)in(select(slice_id)from(pkvm_hypervisor_events)order/**/by(dur));",
	"sql --csv FILE0 FILE1 select*from(vcpu_states);select*from(thread_states);select*from(cpu),thread;"
	"select(reason),max(dur)from(hyp_calls)group/**/by/**/1;",
	"sync FILE0 FILE1",
	"sync --json FILE0 FILE1",
	"sync --plot OUT FILE0 FILE1",
	"sync --write FILE0 FILE1",
	"import --hyp TEXT -i FILE0 -o OUT",
	"import --hyp-raw TEXT -i FILE0 -o OUT",
	"view -o OUT FILE0 FILE1",
	"cut --time +0,+1ms -o OUT FILE0 FILE1",
	"cut --per 1ms -o OUT --no-guests FILE0",
	"merge -o OUT --no-guests FILE0 FILE1",
	"diff --all FILE0 FILE1",
	"diff --causes --json FILE0 FILE1",
	"path --at sched_switch --csv FILE0 FILE1",
	"why FILE0 FILE1",
	"why --preset wakeup --json FILE0 FILE1",
	"why --diff FILE0 FILE1",
	"export --parquet TABLES --tables all FILE0 FILE1",
	"flame --states -w ns FILE0 FILE1",
};

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} judged[] = {
	{ "report", cmd_report },   { "export", cmd_export }, { "flame", cmd_flame },	{ "stat", cmd_stat },
	{ "latency", cmd_latency }, { "sync", cmd_sync },     { "import", cmd_import }, { "sql", cmd_sql },
	{ "view", cmd_view },	    { "cut", cmd_cut },	      { "merge", cmd_merge },	{ "diff", cmd_diff },
	{ "path", cmd_path },	    { "why", cmd_why },
};

static void run_line(const char *line)
{
	char *words[16], *argv[16], *copy = strdup(line), *at = copy, *word;
	int argc = 0, saved;

	while ((word = strsep(&at, " ")) && argc < 15) {
		bool path = *word >= 'A' && *word <= 'Z';

		words[argc] = path ? str_printf("%s/%s", scratch_dir(), word) : strdup(word);
		if (!words[argc++])
			abort();
	}
	words[argc] = NULL;
	memcpy(argv, words, sizeof(argv)); /* a command reorders its own */
	saved = quiet_begin();
	for (size_t i = 0; i < ARRAY_SIZE(judged); i++)
		if (!strcmp(judged[i].name, words[0]))
			judged[i].run(argc, argv);
	quiet_end(saved);
	while (argc)
		free(words[--argc]);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t sum = 0;
	const char *line;

	put_files(data, size);
	for (size_t i = 0; i < size; i++)
		sum = sum * 31 + data[i];
	line = lines[sum % ARRAY_SIZE(lines)];
	run_line(line);
	/* a directory must be new, and machines of the recording give files their names */
	if (strstr(line, "--parquet") || !strncmp(line, "cut", 3) || !strncmp(line, "merge", 5))
		scratch_clear();
	return 0;
}
