// SPDX-License-Identifier: LGPL-2.1-or-later
/* What export --anonymize hides. Whatever is not known to be harmless is hidden. */
#include "base/field.h"
#include "base/files.h"
#include "convert/export/anonymize.h"

#define KEY_MIN 16
#define KEY_MAX 4096

int anonymize_key(struct siphash_key *key, const char *path, const struct log *log)
{
	int fd = open_regular(path), ret = fd;
	struct siphash_key first;
	struct buf text = { 0 };
	struct stat st;

	if (fd >= 0)
		ret = fstat(fd, &st) ? -errno : read_fd(fd, KEY_MAX, &text);
	if (ret) {
		log_fail_errno(log, ret, "cannot read the key '%s'", path);
	} else if (st.st_mode & (S_IRWXG | S_IRWXO)) {
		ret = log_fail(log, -EPERM,
			       "the key '%s' is no secret: others may open it; run: chmod 600 %s", path,
			       path);
	} else if (text.len < KEY_MIN) {
		ret = log_fail(log, -EINVAL,
			       "the key '%s' has fewer than %d bytes; make one: head -c 32 /dev/urandom > %s",
			       path, KEY_MIN, path);
	} else {
		/* a longer file counts with all its bytes: each half is a hash of them */
		memcpy(&first, text.data, sizeof(first));
		key->v[0] = siphash(&first, text.data, text.len);
		first.v[1] = ~first.v[1];
		key->v[1] = siphash(&first, text.data, text.len);
	}
	fd_close(&fd);
	buf_release(&text);
	return ret;
}

static bool words_have(const char *words, const char *word, size_t n)
{
	for (size_t len; *words; words += len + (words[len] != '\0')) {
		len = strcspn(words, " ");
		if (len == n && !memcmp(words, word, n))
			return true;
	}
	return false;
}

/* "swapper/3", as the kernel's idle task of CPU 3 */
static bool text_is_idle(const char *text)
{
	return !strncmp(text, "swapper/", 8) && !text[8 + strspn(text + 8, "0123456789")];
}

void anonymize_text(const struct siphash_key *key, struct buf *text, size_t begin)
{
	const char *name = buf_str(text);
	uint64_t hash;

	if (!name)
		return;
	name += begin;
	if (!*name || words_have("host hyp <idle>", name, strlen(name)) || text_is_idle(name))
		return;
	hash = siphash(key, name, text->len - begin);
	text->len = begin;
	buf_printf(text, "%016" PRIx64, hash);
}

/* Whether the field's value goes into what an argument of a print format shows. */
static bool arg_shows(const struct tep_print_arg *a, const char *field)
{
	switch (a ? a->type : TEP_PRINT_NULL) {
	case TEP_PRINT_FIELD:
		return !strcmp(a->field.name, field);
	case TEP_PRINT_TYPE:
		return arg_shows(a->typecast.item, field);
	case TEP_PRINT_FLAGS:
		return arg_shows(a->flags.field, field);
	case TEP_PRINT_SYMBOL:
		return arg_shows(a->symbol.field, field);
	case TEP_PRINT_OP:
		return arg_shows(a->op.left, field) || arg_shows(a->op.right, field);
	default:
		return false;
	}
}

/* Whether an event's text has the field in decimal, or in words, and never in hexadecimal, as addresses are.
 */
static bool field_is_count(const struct tep_event *e, const char *field)
{
	const struct tep_print_arg *a = e->print_fmt.args;
	bool count = false;

	for (const char *p = e->print_fmt.format; a && p && (p = strchr(p, '%')); p++) {
		p += 1 + strspn(p + 1, "-+ #0123456789.hlLqjzt");
		if (*p == '%')
			continue;
		if (*p == '*')
			return false; /* an argument that is a width */
		if (arg_shows(a, field)) {
			if (!*p || !strchr("dius", *p))
				return false;
			count = true;
		}
		if (!*p)
			break;
		a = a->next;
	}
	return count;
}

bool anonymize_drops_field(const struct tep_event *e, const struct tep_format_field *f)
{
	static const char addresses[] = "addr address far gfn gpa gva hva ip ipa pc pfn ptr ret rip sp";
	size_t n;

	if (f->flags & TEP_FIELD_IS_STRING)
		return false; /* hashed */
	if (!field_is_number(f) || f->flags & TEP_FIELD_IS_POINTER)
		return true; /* lists: stacks, bytes, addresses of networks */
	if (f->size < 8)
		return false; /* too small for an address */
	for (const char *part = f->name; *part; part += n + (part[n] != '\0')) {
		n = strcspn(part, "_");
		if (words_have(addresses, part, n))
			return true;
	}
	return !field_is_count(e, f->name);
}

enum anonymize anonymize_column(const char *table, const char *column, bool text)
{
	static const char kept[] =
		"arch by category class clock ended esr_class flat_key key left_for method "
		"preset program reason release state system value_type";
	static const char dropped[] = "display_value int_value queue string_value text what";
	size_t n = strlen(column);

	if (words_have(dropped, column, n))
		return ANONYMIZE_DROP;
	/* the names of events, and of reasons */
	if (!text || words_have(kept, column, n) ||
	    (!strcmp(column, "name") && words_have("events slices", table, strlen(table))))
		return ANONYMIZE_KEEP;
	return ANONYMIZE_HASH;
}
