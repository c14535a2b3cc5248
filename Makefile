# SPDX-License-Identifier: GPL-2.0-only
#
#   make                    build/hyptrace and friends
#   make static             build/hyptrace-arm64: all of it in one file that needs no libraries
#   make check              all tests that run anywhere (minutes); make quick: those of what changed
#   make lab                prepare the pKVM lab's parts in a cache
#   make check-lab          the tests on a live pKVM host (QEMU software emulation)
#   make soak               SOAK_MINUTES=30 of recordings there, with guests that misbehave
#   make demo-replay        a first look at a recorded capture
#   make demo | bench | fuzz | faults | install | dist
#   make lint               cppcheck, clang-tidy, the manual, spelling; make coverage
#   make check-packages     Debian's packages in a chroot; make check-newer: SUITE=trixie's libraries;
#                           make check-fleet: a cluster of Dask
#
# O=DIR     build directory        SAN=1           ASan and UBSan
# V=1       show commands          WERROR=1        warnings are errors
# CROSS_COMPILE=aarch64-linux-gnu- builds into build-arm64/

VERSION := 0.1.0

ifeq ($(CROSS_COMPILE),aarch64-linux-gnu-)
ARCH_SUFFIX := -arm64
endif
O ?= build$(ARCH_SUFFIX)$(if $(SAN),-san)

CC := $(CROSS_COMPILE)gcc
CXX := $(CROSS_COMPILE)g++
AR := $(CROSS_COMPILE)ar
OBJCOPY := $(CROSS_COMPILE)objcopy
ifneq ($(CC_OVERRIDE),)
CC := $(CC_OVERRIDE)
endif
PKG_CONFIG ?= pkg-config

prefix ?= /usr/local
bindir ?= $(prefix)/bin
libdir ?= $(prefix)/lib
includedir ?= $(prefix)/include
mandir ?= $(prefix)/share/man
bashcompdir ?= $(prefix)/share/bash-completion/completions
zshcompdir ?= $(prefix)/share/zsh/site-functions
# hypertrace(7) for a guest's kernel: make -C /lib/modules/VERSION/build M=HERE
modsrcdir ?= $(prefix)/src/hypertrace-$(VERSION)
# where hyptrace finds it from its own place: ../lib/hyptrace/shim
shimdir = $(abspath $(bindir)/../lib/hyptrace/shim)
DESTDIR ?=

ifeq ($(ARCH_SUFFIX),-arm64)
HYPTRACE_LAB_CACHE ?= $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/hyptrace-lab
SYSROOT ?= $(HYPTRACE_LAB_CACHE)/sysroot-arm64
PKG_CONFIG := PKG_CONFIG_SYSROOT_DIR=$(SYSROOT) \
	PKG_CONFIG_LIBDIR=$(SYSROOT)/usr/lib/aarch64-linux-gnu/pkgconfig pkg-config
CROSS_LDFLAGS := -L$(SYSROOT)/usr/lib/aarch64-linux-gnu -Wl,-rpath-link,$(SYSROOT)/usr/lib/aarch64-linux-gnu
# made first: its packages decide what is built
$(if $(wildcard $(SYSROOT)),,$(info $(shell HYPTRACE_LAB_CACHE=$(HYPTRACE_LAB_CACHE) tests/lab/sysroot)))
endif

PACKAGES := libtraceevent libzstd zlib
PKG_CFLAGS = $(shell $(PKG_CONFIG) --cflags $(PACKAGES) $(MICROHTTPD))
PKG_LIBS = $(shell $(PKG_CONFIG) --libs $(PACKAGES)) -lm

# makes hyptrace export --perfetto faster than zlib
ISAL := $(shell $(PKG_CONFIG) --exists libisal && echo 1)

# hyptrace sql; everything else works without
SQLITE := $(shell $(PKG_CONFIG) --exists 'sqlite3 >= 3.38' && echo 1)

# names of processes' functions in hyptrace flame
DW := $(shell $(PKG_CONFIG) --exists libdw libelf && echo 1)

# the screen of hyptrace top, which prints one table behind the other without
NCURSES := $(shell $(PKG_CONFIG) --exists ncursesw && echo 1)

# lines that can be edited at the prompt of hyptrace sql; it works without
LIBEDIT := $(shell $(PKG_CONFIG) --exists libedit && echo 1)

# hyptrace watch; everything else works without
TRACEFS := $(shell $(PKG_CONFIG) --exists 'libtracefs >= 1.6' && echo 1)

# hyptrace export --ctf, likewise
BABELTRACE2 := $(shell $(PKG_CONFIG) --exists babeltrace2 && echo 1)

# libvirt's headers check the types of what is loaded at run time; everything works without
LIBVIRT_CFLAGS := $(shell $(PKG_CONFIG) --exists libvirt-qemu && echo -DHYPTRACE_LIBVIRT `$(PKG_CONFIG) --cflags libvirt-qemu`)

# hyptrace watch --listen, which loads the library at run time: its header
MICROHTTPD := $(shell $(PKG_CONFIG) --exists libmicrohttpd && echo libmicrohttpd)

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith \
	-Wvla -Wno-unused-parameter $(if $(WERROR),-Werror)
# sanitised code is for tests: half the compiling, and lines are all that their reports show
OPT ?= $(if $(SAN),-O1 -g1,-O2 -g)
comma := ,
SANFLAGS := $(if $(SAN),-fsanitize=address$(comma)undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer) $(if $(COVERAGE),--coverage -fprofile-update=atomic)
CPPFLAGS += -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DHYPTRACE_VERSION='"$(VERSION)"' -Ilib -Iinclude
# gcc would zero structs of 100 bytes and more by rep stos, which takes as long as storing 400; not on arm64
MEMSET := -mmemset-strategy=unrolled_loop:512:noalign,libcall:-1:noalign
MEMSET := $(shell $(CC) $(MEMSET) -E - </dev/null >/dev/null 2>&1 && echo $(MEMSET))
CFLAGS += -std=gnu11 $(OPT) $(MEMSET) $(WARN) $(SANFLAGS) -pthread
# sanitised programs have a fixed address: 220,000 relocations fewer at each start
LDFLAGS += $(SANFLAGS) $(if $(SAN),-no-pie) $(CROSS_LDFLAGS) -pthread

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' $(1) $(2))

# the static file has what every recording needs (make static)
ifneq ($(STATIC),)
ISAL :=
SQLITE :=
NCURSES :=
LIBEDIT :=
BABELTRACE2 :=
TRACEFS :=
MICROHTTPD :=
CPPFLAGS += -DHYPTRACE_STATIC
endif

LIB_SRC := $(wildcard lib/*/*.c lib/*/*/*.c)
TEXT_OBJ := $(O)/gen/view_page_html.o $(O)/gen/flame_script.o $(O)/gen/flame_style.o
CMD_SRC := $(wildcard cmd/*.c)
ifeq ($(ISAL),1)
PACKAGES += libisal
CPPFLAGS += -DHYPTRACE_ISAL
endif
ifeq ($(SQLITE),1)
PACKAGES += sqlite3
TEXT_OBJ += $(O)/gen/sql_perfetto_text.o $(O)/gen/sql_segments_text.o $(O)/gen/sql_tables_text.o
CPPFLAGS += -DHYPTRACE_SQL
else
LIB_SRC := $(filter-out lib/ask/sql/%,$(LIB_SRC))
endif
ifeq ($(BABELTRACE2),1)
PACKAGES += babeltrace2
CPPFLAGS += -DHYPTRACE_CTF
else
LIB_SRC := $(filter-out lib/convert/export/ctf%,$(LIB_SRC))
endif
ifeq ($(TRACEFS),1)
PACKAGES += libtracefs
CPPFLAGS += -DHYPTRACE_TRACEFS
else
LIB_SRC := $(filter-out $(addprefix lib/record/watch/,vcpu-hists.c watcher.c metrics.c),$(LIB_SRC))
endif
ifneq ($(MICROHTTPD),)
CPPFLAGS += -DHYPTRACE_MICROHTTPD
endif
ifeq ($(LIBEDIT),1)
PACKAGES += libedit
CPPFLAGS += -DHYPTRACE_LIBEDIT
endif
ifeq ($(NCURSES),1)
PACKAGES += ncursesw
CPPFLAGS += -DHYPTRACE_NCURSES
endif
ifeq ($(DW),1)
PACKAGES += libdw libelf
CPPFLAGS += -DHYPTRACE_DW
endif
UNIT_SRC := $(filter-out $(if $(SQLITE),,tests/unit/sql.c tests/unit/sql-random.c),$(wildcard tests/unit/*.c))
FUZZ_SRC := $(filter-out tests/fuzz/main.c $(if $(SQLITE),,tests/fuzz/sql.c),$(wildcard tests/fuzz/*.c))
TOOL_SRC := $(wildcard tests/tools/*.c)
INTEG_SRC := $(wildcard tests/integration/*.c)
AGENT_SRC := $(wildcard agent/*.c)

LIB_OBJ := $(LIB_SRC:%.c=$(O)/%.o) $(TEXT_OBJ)
CMD_OBJ := $(CMD_SRC:%.c=$(O)/%.o)
AGENT_OBJ := $(AGENT_SRC:%.c=$(O)/%.o)
PLUGINS := hyp kvm-arm64 crosvm hypertrace
PLUGIN_SO := $(PLUGINS:%=$(O)/plugins/%.so)
LINKED_PLUGINS := $(PLUGINS:%=$(O)/plugins/linked-%.o)
PLUGIN_OBJ := $(patsubst %.c,$(O)/%.o,$(wildcard plugins/*.c))
# all commands but main(), for the tests of the command line: each takes what it calls
CMD_LIB := $(O)/cmd/commands.a
UNIT_BIN := $(UNIT_SRC:tests/unit/%.c=$(O)/tests/unit/%)
FUZZ_BIN := $(FUZZ_SRC:tests/fuzz/%.c=$(O)/tests/fuzz/%)
PRELOADS := countopens locks faults latepage
TOOL_BIN := $(TOOL_SRC:tests/tools/%.c=$(O)/tests/tools/%)
TOOL_BIN := $(foreach t,$(TOOL_BIN),$(t)$(if $(filter $(PRELOADS),$(notdir $(t))),.so))
INTEG_BIN := $(INTEG_SRC:tests/integration/%.c=$(O)/tests/integration/%)

LIBRARY := $(O)/libhyptrace.so
SONAME := libhyptrace.so.0

# marks of a guest's own code: for its programs, with no library but the C's
HYPERTRACE_OBJ := $(patsubst %.c,$(O)/%.o,$(wildcard agent/hypertrace/*.c))
HYPERTRACE_LIB := $(O)/libhypertrace-guest.a $(O)/libhypertrace-guest.so

all: $(if $(CMD_SRC),$(O)/hyptrace) $(O)/shim/trace-cmd $(O)/hyptrace-agent $(if $(SAN),,$(LIBRARY)) $(if $(SAN),,$(HYPERTRACE_LIB)) $(PLUGIN_SO) kernelshark

$(O)/%.o: %.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(O)/lib/record/guest/libvirt.o: CPPFLAGS += $(LIBVIRT_CFLAGS)

# the view's page: its style and its script within, which its policy allows by their hashes
PAGE := lib/convert/view/page
PAGE_JS := $(patsubst %,$(PAGE)/%.js,data sums colours timeline input tables events chains \
	findings rates tasks figures flame-graph questions comparison search start)
page_hash = sha256-$$(env printf "$$( (echo; cat $1) | sha256sum | cut -c-64 | sed 's/../\\x&/g')" | base64)
$(O)/gen/view_page_html: $(PAGE)/page.html $(PAGE)/page.css $(PAGE_JS)
	$(Q)mkdir -p $(@D)
	$(Q)sed -e "s|@SCRIPT_HASH@|$(call page_hash,$(PAGE_JS))|; s|@STYLE_HASH@|$(call page_hash,$(PAGE)/page.css)|" \
		$(foreach f,$(PAGE)/page.css $(PAGE_JS),-e '/^@$(notdir $f)@$$/{r $f' -e 'd}') $< >$@

# the flame graph's script and style, without comments
$(O)/gen/flame_script: lib/ask/flame/flame.js
	$(Q)mkdir -p $(@D)
	$(Q)sed '/^\/\//d' $< >$@
$(O)/gen/flame_style: lib/ask/flame/flame.css
	$(Q)mkdir -p $(@D)
	$(Q)sed 1d $< >$@

# SQL without comments: tables, Perfetto's, and the segments of its span joins
$(O)/gen/sql_%_text: lib/ask/sql/%.sql
	$(Q)mkdir -p $(@D)
	$(Q)sed '/^--/d; /^$$/d' $< >$@

# a text as a string of C, by the name of its file
$(TEXT_OBJ): %.o: %
	$(call say,TEXT,$<)
	$(Q)(echo 'extern const char $(*F)[]; const char $(*F)[] ='; sed 's/["\\]/\\&/g; s/.*/"&\\n"/' $<; echo ';') >$<.c
	$(Q)$(CC) $(CFLAGS) -c -o $@ $<.c

$(CMD_LIB): $(filter-out $(O)/cmd/hyptrace.o,$(CMD_OBJ))
$(O)/libhyptrace.a: $(LIB_OBJ) $(LINKED_PLUGINS)
$(O)/%.a:
	$(call say,AR,$@)
	$(Q)rm -f $@
	$(Q)$(AR) rcs $@ $^

# for programs of others: include/hyptrace.h, and what its calls need
$(LIBRARY): $(filter $(O)/lib/api/%,$(LIB_OBJ)) $(O)/libhyptrace.a lib/api/libhyptrace.map
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=lib/api/libhyptrace.map \
		-Wl,-z,defs -Wl,--as-needed -o $@ $(filter %.o %.a,$^) $(PKG_LIBS)

$(O)/libhypertrace-guest.a: $(HYPERTRACE_OBJ)
$(HYPERTRACE_OBJ): CFLAGS += -fPIC -fvisibility=hidden
$(O)/libhypertrace-guest.so: $(HYPERTRACE_OBJ)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,libhypertrace-guest.so.0 -Wl,-z,defs -o $@ $^

# others' plugins call the one symbol (lib/read/inputs.c)
$(O)/hyptrace: $(CMD_OBJ) $(O)/libhyptrace.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -Wl,--export-dynamic-symbol=tep_plugin_kvm_get_func -o $@ $^ $(PKG_LIBS)

# hyptrace by the name of trace-cmd (cmd/hyptrace.c)
$(O)/shim/trace-cmd:
	$(Q)mkdir -p $(@D)
	$(Q)ln -sf ../hyptrace $@

# A plugin as an object of the library: its exports get names of their own (lib/read/tepfile.c), all else
# stays inside, as in a shared object
LINKED_OWN := $(O)/plugins/plugin.o $(O)/plugins/relay.o
$(O)/plugins/linked-hyp.o: $(O)/plugins/hyp-reason.o
linked_name = linked_$(subst -,_,$*)
$(O)/plugins/linked-%.o: $(O)/plugins/%.o $(LINKED_OWN)
	$(call say,LD,$@)
	$(Q)$(CC) -r -nostdlib -o $@.all $^
	$(Q)$(OBJCOPY) $(foreach s,loader unloader,--redefine-sym tep_plugin_$s=$(linked_name)_$s) \
		--redefine-sym hyptrace_plugin_text=$(linked_name)_text $@.all
	$(Q)$(OBJCOPY) --wildcard --keep-global-symbol='linked_*' $@.all $@
	$(Q)rm -f $@.all

# what it has of its own: cmd/memory.c, lib/base/static.c
STATIC_OWN := malloc calloc realloc dlopen dlsym dlclose dlerror getpwnam initgroups
$(O)/hyptrace-static: $(CMD_OBJ) $(AGENT_OBJ) $(O)/libhyptrace.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -static -Wl,--gc-sections $(STATIC_OWN:%=-Wl,--wrap=%) -o $@ $^ $(PKG_LIBS)

# one static file, for guests without libraries; under ASan that cannot be
$(AGENT_OBJ): OPT := $(if $(SAN),$(OPT),-Os -g -ffunction-sections -fdata-sections)
$(O)/hyptrace-agent: $(AGENT_OBJ) $(O)/libhyptrace.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) $(if $(SAN),,-static -Wl,--gc-sections) -o $@ $^

# a preload has no hold on a static file
$(O)/tests/hyptrace-agent: $(AGENT_OBJ) $(O)/libhyptrace.a
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(LDFLAGS) -Wl,--gc-sections -o $@ $^

# libtraceevent's plugins: the decode tables and themselves, no more
decode = $(1:%=$(O)/lib/base/decode/%.o)
util = $(1:%=$(O)/lib/base/%.o)
$(O)/plugins/hyp.so: $(O)/plugins/hyp-reason.o $(call decode,conversion esr hcall hyp-printk id-table smccc symbols)
$(O)/plugins/kvm-arm64.so: $(call decode,esr smccc)
$(O)/plugins/crosvm.so: $(call decode,crosvm-lines)
$(O)/plugins/hypertrace.so: $(call decode,mark-lines id-table)
PLUGIN_SHARED := $(O)/plugins/plugin.o $(O)/plugins/relay.o $(call util,array buf cursor field files strings escape)
$(LIB_OBJ) $(PLUGIN_OBJ): CFLAGS += -fPIC -ffunction-sections -fdata-sections
# linked-%.o is renamed symbol by symbol
$(PLUGIN_OBJ): CFLAGS += -fno-lto
# what is done for each event: its functions into each other
EACH_EVENT := $(filter $(O)/lib/file/dat/% $(O)/lib/read/% $(O)/lib/ask/states/%,$(LIB_OBJ))
$(EACH_EVENT): OPT := $(if $(SAN),$(OPT),-O3 -g -fno-semantic-interposition)
# All plugins export the same names, and are loaded into one global scope: -Bsymbolic
$(O)/plugins/%.so: $(O)/plugins/%.o $(PLUGIN_SHARED) plugins/plugin.map
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-Bsymbolic,--version-script=plugins/plugin.map -o $@ $(filter %.o,$^) \
		$(shell $(PKG_CONFIG) --libs libtraceevent)

# KernelShark's plugin: where there is what it needs, which is no part of the rest
KSHARK_SO := $(O)/plugins/kernelshark/plugin-hyptrace.so
KSHARK_CFLAGS = $(shell $(PKG_CONFIG) --cflags libkshark 2>/dev/null) -Iplugins -Wno-ignored-qualifiers
# by their files, of which trixie has those with all of the version alone: its links dangle
KSHARK_LIBDIR := $(shell $(PKG_CONFIG) --variable=libdir libkshark 2>/dev/null)
KSHARK_LIBS := $(foreach l,gui plot,$(lastword $(sort $(wildcard $(KSHARK_LIBDIR)/libkshark-$l.so.*))))
KSHARK_OBJ := $(patsubst plugins/%,$(O)/plugins/%.o,$(basename $(wildcard plugins/kernelshark/*.c*)))
$(KSHARK_OBJ): CFLAGS += -fPIC $(KSHARK_CFLAGS)
$(O)/plugins/kernelshark/%.o: plugins/kernelshark/%.cpp
	$(call say,CXX,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CXX) $(CPPFLAGS) $(PKG_CFLAGS) $(filter-out -std=% -Wstrict-prototypes -Wmissing-prototypes,$(CFLAGS)) \
		-std=c++17 -MMD -MP -c -o $@ $<
KSHARK_WITH := $(O)/plugins/plugin.o $(O)/plugins/hyp-reason.o $(call decode,crosvm-lines mark-lines id-table) \
		$(O)/lib/spans/visits.o $(O)/lib/spans/exits.o $(O)/lib/spans/marks.o $(call util,array buf cursor field files map strings escape)
$(KSHARK_SO): $(KSHARK_OBJ) $(KSHARK_WITH)
	$(call say,LD,$@)
	$(Q)$(CXX) $(LDFLAGS) -shared -Wl,-Bsymbolic,--version-script=plugins/kernelshark/plugin.map -o $@ $^ \
		$(KSHARK_LIBS) $(shell $(PKG_CONFIG) --libs libkshark libtracecmd libtraceevent)

# of this machine, not sanitised: KernelShark has to load it
kernelshark: $(if $(SAN)$(ARCH_SUFFIX),,$(or $(wildcard $(KSHARK_SO)),$(shell [ -e "$(word 2,$(KSHARK_LIBS))" ] && \
	$(CXX) $(KSHARK_CFLAGS) -include kernelshark/KsPlugins.hpp -fsyntax-only -x c++ /dev/null \
	2>/dev/null && echo $(KSHARK_SO)),kernelshark-left-out))
kernelshark-left-out:
	@echo "  without KernelShark's plugin: it needs g++, libkshark-dev, libjson-c-dev and libglu1-mesa-dev"

# ---- tests -------------------------------------------------------------------

# what a test itself does takes less time than optimising it
$(O)/tests/unit/% $(O)/tests/fuzz/%: private OPT := -O0 -g$(if $(SAN),1)
# cmocka 2 deprecates assert_in_range() for names that Debian 12's cmocka does not have
$(UNIT_BIN:=.o): CFLAGS += -Wno-deprecated-declarations

$(O)/tests/unit/%: $(O)/tests/unit/%.o $(CMD_LIB) $(O)/libhyptrace.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -Wl,-t,-t -o $@ $^ $(PKG_LIBS) -lcmocka >$@.objects

$(O)/tests/integration/%: $(O)/tests/integration/%.o $(O)/libhyptrace.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(PKG_LIBS)

# the peers' own libraries, as judges
TOOL_LIBS = $(shell $(PKG_CONFIG) --libs libtracecmd) $(if $(filter %kshark,$@),-lkshark)
TOOL_CFLAGS = $(shell $(PKG_CONFIG) --cflags libtracecmd)
$(O)/tests/tools/%: tests/tools/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(PKG_CFLAGS) $(TOOL_CFLAGS) $(CFLAGS) -o $@ $< $(filter %.o,$^) $(LDFLAGS) $(TOOL_LIBS) \
		$(PKG_LIBS)
# it shows the spans that KernelShark's plugin draws
$(O)/tests/tools/loadkshark: private CFLAGS += $(KSHARK_CFLAGS)
$(O)/tests/tools/loadkshark: $(filter %/row-spans.o %/shown.o,$(KSHARK_OBJ)) $(KSHARK_WITH)

# a preload
$(O)/tests/tools/%.so: tests/tools/%.c
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -fPIC -shared -o $@ $<

$(O)/tests/fuzz/%: $(O)/tests/fuzz/%.o $(O)/tests/fuzz/main.o $(CMD_LIB) $(O)/libhyptrace.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(PKG_LIBS)

BENCH_BIN := $(patsubst tests/bench/%.c,$(O)/tests/bench/%,$(wildcard tests/bench/*.c))
$(O)/tests/bench/%: $(O)/tests/bench/%.o $(O)/libhyptrace.a
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(PKG_LIBS)

agent: $(O)/hyptrace-agent
$(O)/tests/unit/plugins $(O)/tests/unit/plugins-events $(O)/tests/unit/text: | $(PLUGIN_SO)

$(O)/tests/unit/hypertrace-guest: $(HYPERTRACE_OBJ)
$(O)/tests/unit/kernelshark-shown: $(O)/plugins/kernelshark/shown.o $(O)/lib/spans/exits.o

units: $(UNIT_BIN)
integration: $(INTEG_BIN) $(O)/tests/hyptrace-agent
benches: $(BENCH_BIN)
tools: $(TOOL_BIN)
fuzzers: $(FUZZ_BIN)

JOBS := -j$(shell nproc)
MAKE_HERE = $(MAKE) --no-print-directory $(JOBS) O=$(O)
MAKE_ARM64 = $(MAKE) --no-print-directory $(JOBS) O=build-arm64 SAN= CC_OVERRIDE= CROSS_COMPILE=aarch64-linux-gnu-

# one file for phones and hosts without libraries: recorder, agent, plugins and what they are linked with
static:
	$(Q)$(MAKE) --no-print-directory $(JOBS) O=build-static SAN= STATIC=1 CROSS_COMPILE=aarch64-linux-gnu- \
		build-static/hyptrace-static
	$(Q)mkdir -p $(O)
	$(Q)aarch64-linux-gnu-strip -o $(O)/hyptrace-arm64 build-static/hyptrace-static
	$(Q)stat -c '  %n, %s bytes' $(O)/hyptrace-arm64

# everything that runs anywhere; unit tests and fuzzers under ASan and UBSan too
check: check-programs
	$(Q)O=$(O) tests/check

check-programs:
	$(Q)tests/deps check
	$(Q)$(MAKE_HERE) all units tools integration benches
	$(Q)$(MAKE) --no-print-directory $(JOBS) O=$(O)-san SAN=1 all units fuzzers

# of those, what has to do with the files that have changed
quick: all
	$(Q)O=$(O) tests/quick $(SINCE)

# each call that can fail, in each command and the agent; kills at each step: an hour
faults: all tools integration
	$(Q)O=$(O) FAULTS_EVERY=$(or $(FAULTS_EVERY),1) tests/integration/faults.t

# synchronisation against SEEDS made-up truths of each kind, full size: an hour for 1000
sync-seeds: $(O)/tests/unit/sync
	$(Q)HYPTRACE_SYNC_SEEDS=$(or $(SEEDS),1000),v $<

# hyptrace-diff(1)'s table: differences called by chance, and changes found; three minutes of CPU for 1000
diff-nulls: $(O)/tests/unit/significance
	$(Q)HYPTRACE_DIFF_SEEDS=$(or $(SEEDS),1000) $<

# chains of causes at random moments of made-up machines; make check has a tenth
path-truths: $(O)/tests/unit/path-truth
	$(Q)MOMENTS=$(or $(MOMENTS),10000) $<
fuzz: path-truths

# 10,000 random queries against plain SQLite; LATENCY_WORLDS made-up machines for the presets of latency;
# libFuzzer, FUZZ_TIME seconds each
fuzz: diff-nulls $(O)/hyptrace $(O)/tests/integration/make-trace $(if $(SQLITE),$(O)/tests/unit/sql-random)
	$(Q)$(foreach t,$(filter %/sql-random,$^),HYPTRACE_SQL_QUERIES=10000 $t)
	$(Q)O=$(O) LATENCY_WORLDS=$(or $(LATENCY_WORLDS),80) tests/integration/latency-truth.t
	$(Q)tests/fuzz/run $(or $(FUZZ_TIME),60)

lab:
	$(Q)tests/lab/build

check-lab: lab
	$(Q)tests/deps check
	$(Q)$(MAKE_HERE) all tools integration
	$(Q)$(MAKE_ARM64)
	$(Q)$(MAKE) --no-print-directory O=$(O) static
	$(Q)O=$(O) tests/check-lab

# SOAK_MINUTES=30 of recordings with guests that reboot, pause, vanish and lie
soak: lab
	$(Q)$(MAKE_ARM64) all integration
	$(Q)tests/lab/soak
	$(Q)tests/lab/soak rotate

demo: lab
	$(Q)tests/deps demo
	$(Q)$(MAKE_HERE) all
	$(Q)$(MAKE_ARM64)
	$(Q)O=$(O) tests/lab/demo

# a recorded capture, without the lab; sooner there without optimising, and without what it does not use
demo-replay: export O = build-replay
demo-replay:
	$(Q)tests/deps replay
	$(Q)$(MAKE) --no-print-directory $(JOBS) O=$(O) OPT=-O0 $(O)/hyptrace $(PLUGINS:%=$(O)/plugins/%.so) kernelshark
	$(Q)tests/demo-replay

# BENCH="-q read memory" and the like: tests/bench/run says what there is
BENCH_IN_LAB := $(if $(BENCH),$(filter record load hypertrace,$(BENCH)),all)
bench: $(if $(BENCH_IN_LAB),lab)
	$(Q)tests/deps check
	$(Q)$(MAKE_HERE) all benches tools
	$(Q)$(if $(BENCH_IN_LAB),$(MAKE_ARM64))
	$(Q)O=$(O) tests/bench/run $(BENCH)

# ---- install -----------------------------------------------------------------

# below libdir, as all else: stock tools find them there if libdir is theirs (hyptrace-plugins(1), FILES)
plugindir ?= $(libdir)/traceevent/plugins
ksharkdir ?= $(libdir)/kernelshark/plugins
unitdir ?= $(prefix)/lib/systemd/system

# empty: keep symbols, for a package of them
STRIP ?= $(CROSS_COMPILE)strip
install_program = install -D -m 755 $(if $(STRIP),-s --strip-program='$(STRIP)')
install_plugin = install -D -m 644 $(if $(STRIP),-s --strip-program='$(STRIP)')
# FROM.in TO: with the places of this installation
define install_filled
	install -d $(DESTDIR)$(dir $2)
	sed 's,@prefix@,$(prefix),; s,@bindir@,$(bindir),; s,@libdir@,$(libdir),; s,@includedir@,$(includedir),; \
		s,@version@,$(VERSION),' $1 >$(DESTDIR)$2
endef

install: all
	$(install_program) $(O)/hyptrace $(DESTDIR)$(bindir)/hyptrace
	$(install_program) $(O)/hyptrace-agent $(DESTDIR)$(bindir)/hyptrace-agent
	install -d $(DESTDIR)$(shimdir)
	ln -srf $(DESTDIR)$(bindir)/hyptrace $(DESTDIR)$(shimdir)/trace-cmd
	install -D -m 644 cmd/completion/hyptrace.bash $(DESTDIR)$(bashcompdir)/hyptrace
	install -D -m 644 -t $(DESTDIR)$(zshcompdir) cmd/completion/_hyptrace
	install -D -m 644 include/hyptrace.h $(DESTDIR)$(includedir)/hyptrace.h
	$(install_program) $(LIBRARY) $(DESTDIR)$(libdir)/libhyptrace.so.$(VERSION)
	ln -sf libhyptrace.so.$(VERSION) $(DESTDIR)$(libdir)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(libdir)/libhyptrace.so
	install -D -m 644 -t $(DESTDIR)$(includedir) agent/hypertrace/hypertrace-guest.h agent/hypertrace/qemu-hypertrace.h
	install -D -m 644 -t $(DESTDIR)$(libdir) $(O)/libhypertrace-guest.a
	$(if $(STRIP),$(STRIP) -g $(DESTDIR)$(libdir)/libhypertrace-guest.a)
	$(install_program) $(O)/libhypertrace-guest.so $(DESTDIR)$(libdir)/libhypertrace-guest.so.0
	ln -sf libhypertrace-guest.so.0 $(DESTDIR)$(libdir)/libhypertrace-guest.so
	install -D -m 644 -t $(DESTDIR)$(modsrcdir) agent/hypertrace/kernel/Kbuild agent/hypertrace/kernel/*.c \
		agent/hypertrace/area.h agent/hypertrace/hypertrace-guest.h
	install -D -m 644 -t $(DESTDIR)$(modsrcdir)/file/wire lib/file/wire/hypertrace-ring.h
	$(call install_filled,agent/hypertrace/kernel/dkms.conf.in,$(modsrcdir)/dkms.conf)
	$(call install_filled,lib/api/hyptrace.pc.in,$(libdir)/pkgconfig/hyptrace.pc)
	$(call install_filled,agent/hypertrace/hypertrace-guest.pc.in,$(libdir)/pkgconfig/hypertrace-guest.pc)
	$(call install_filled,packaging/systemd/hyptrace-agent.service.in,$(unitdir)/hyptrace-agent.service)
	$(call install_filled,packaging/systemd/hyptrace-flight.service.in,$(unitdir)/hyptrace-flight.service)
	$(call install_filled,packaging/systemd/hyptrace-ring.service.in,$(unitdir)/hyptrace-ring.service)
	$(call install_filled,packaging/systemd/hyptrace-watch.service.in,$(unitdir)/hyptrace-watch.service)
	install -D -m 644 -t $(DESTDIR)$(unitdir) packaging/systemd/hyptrace-agent.socket
	$(install_plugin) -t $(DESTDIR)$(plugindir) $(PLUGIN_SO)
	[ ! -e $(KSHARK_SO) ] || $(install_plugin) -t $(DESTDIR)$(ksharkdir) $(KSHARK_SO)
	set -e; for p in Documentation/*.[1-8]; do \
		install -D -m 644 $$p $(DESTDIR)$(mandir)/man$${p##*.}/$${p##*/}; done

# the source without debian/, for debian/ and packaging/rpm: of the last commit
dist:
	$(Q)mkdir -p $(O)
	$(Q)git archive -o $(O)/hyptrace_$(VERSION).orig.tar.gz --prefix=hyptrace-$(VERSION)/ HEAD ':(exclude)debian'
	$(Q)stat -c '  %n, %s bytes' $(O)/hyptrace_$(VERSION).orig.tar.gz

# ---- quality -----------------------------------------------------------------

# cppcheck, clang-tidy, the manual, spelling; LINTS="manual spelling": parts, LINTS=analyzer: the slow one
lint:
	$(Q)tests/deps lint
	$(Q)$(MAKE_HERE) lint-here
lint-here: export LINT_FLAGS = $(filter-out -DHYPTRACE_VERSION=%,$(CPPFLAGS)) -DHYPTRACE_VERSION="lint" \
	$(PKG_CFLAGS) $(KSHARK_CFLAGS)
lint-here:
	$(Q)tests/lint $(LINTS)

# debian/'s packages, in chroots; the tests with SUITE=trixie's libraries there. As root, from apt's mirror
check-packages: all
	$(Q)tests/deps chroot
	$(Q)O=$(O) prove -v tests/chroot/packages.t tests/chroot/rpm.t

check-newer:
	$(Q)tests/deps chroot
	$(Q)O=$(O) UNITS=$(UNITS) prove -v tests/chroot/newer.t

# Documentation/fleet.md on a cluster of Debian sid's Dask, in a chroot, then with HOSTS="10 100 1000": likewise
check-fleet: all tools integration
	$(Q)tests/deps chroot
	$(Q)O=$(O) HOSTS="$(HOSTS)" prove -v tests/chroot/dask.t

# of the unit tests; only printed
coverage:
	$(Q)tests/deps coverage
	$(Q)$(MAKE) --no-print-directory $(JOBS) O=build-coverage COVERAGE=1 OPT=-O0 WERROR= units tools
	$(Q)O=build-coverage tests/check units -Q
	$(Q)gcovr -j $(shell nproc) -r . -f lib/ -f cmd/ -f agent/ -f plugins/ build-coverage

format:
	clang-format -i $$(git ls-files '*.c' '*.h' '*.cpp' '*.hpp')

clean:
	rm -rf build build-*

-include $(wildcard $(O)/*/*.d $(O)/*/*/*.d $(O)/*/*/*/*.d)
.PRECIOUS: $(O)/%.o
.PHONY: path-truths all kernelshark kernelshark-left-out agent static units integration benches tools fuzzers check check-programs quick faults sync-seeds diff-nulls fuzz lab check-lab soak demo demo-replay bench install dist check-packages check-newer check-fleet lint lint-here coverage format clean
