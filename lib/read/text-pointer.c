// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints %p: addresses of functions, hardware and networks, uuids, bytes. */
#include <arpa/inet.h>
#include <string.h>
#include <sys/socket.h>

#include "text-priv.h"

/* ---- making ------------------------------------------------------------------------ */

/* Adds a piece for the bytes that %pM, %pI and %pU show, past casts. NULL: no bytes, and b has the text. */
static struct text_piece *text_bytes_add(struct text_build *b, enum text_piece_kind kind,
					 struct tep_print_arg *arg, uint32_t size, const char *invalid)
{
	const struct tep_format_field *f;
	struct text_piece *p;

	while (arg->type == TEP_PRINT_TYPE)
		arg = arg->typecast.item;
	if (arg->type != TEP_PRINT_FIELD) {
		buf_printf(&b->before, "ARG TYPE NOT FIELD BUT %d", arg->type);
		return NULL;
	}
	f = text_arg_field(b, arg);
	if (f && f->size != (int)size)
		buf_addstr(&b->before, invalid);
	if (!f || f->size != (int)size)
		return NULL;
	p = text_piece_add(b, kind);
	if (p)
		p->at = text_place(f);
	return p;
}

/* "hnbl": in which order the bytes lie. */
static bool text_is_reverse(char c)
{
	return c == 'h' || c == 'l';
}

static void text_socket_add(struct text_build *b, const char *s, struct tep_print_arg *arg)
{
	const struct tep_format_field *f;
	struct text_piece *p;

	while (arg->type == TEP_PRINT_TYPE)
		arg = arg->typecast.item;
	if (arg->type != TEP_PRINT_FIELD && arg->type != TEP_PRINT_DYNAMIC_ARRAY) {
		buf_printf(&b->before, "ARG NOT FIELD NOR DYNAMIC ARRAY BUT TYPE %d", arg->type);
		return;
	}
	f = arg->type == TEP_PRINT_FIELD ? text_arg_field(b, arg) : arg->dynarray.field;
	p = f ? text_piece_add(b, TEXT_SOCKET) : NULL;
	if (!p)
		return;
	p->at = text_place(f);
	p->at.dynamic = arg->type == TEP_PRINT_DYNAMIC_ARRAY;
	p->leading = s[0] == 'i';
	p->colons = s[0] == 'I';
	s += 2;
	p->port = p->colons && *s == 'p';
	s += p->port;
	p->compressed = p->colons && *s == 'c';
	s += p->compressed;
	p->reverse = text_is_reverse(*s);
}

static void text_ip_add(struct text_build *b, const char *s, struct tep_print_arg *arg)
{
	struct text_piece *p = NULL;

	if (s[1] == '4')
		p = text_bytes_add(b, TEXT_IP4, arg, 4, "INVALIDIPv4");
	else if (s[1] == '6')
		p = text_bytes_add(b, TEXT_IP6, arg, 16, "INVALIDIPv6");
	else if (s[1] == 'S')
		text_socket_add(b, s, arg);
	if (!p)
		return;
	p->leading = s[0] == 'i';
	p->colons = s[0] == 'I';
	p->compressed = s[0] == 'I' && s[2] == 'c';
	p->reverse = text_is_reverse(s[2]);
}

static void text_dump_add(struct text_build *b, const char *s, const struct text_spec *spec,
			  struct tep_print_arg *arg)
{
	struct text_piece *p;

	if (arg->type != TEP_PRINT_DYNAMIC_ARRAY) {
		buf_printf(&b->before, "ARG TYPE NOT FIELD BUT %d", arg->type);
		return;
	}
	p = text_piece_add(b, TEXT_BYTES);
	if (!p)
		return;
	p->spec = *spec;
	p->at = text_place(arg->dynarray.field);
	p->at.dynamic = true;
	p->delim = s[1] == 'C' ? ":" : s[1] == 'D' ? "-" : s[1] == 'N' ? "" : " ";
}

/* A function, or any other address. */
static void text_address_add(struct text_build *b, char what, struct tep_print_arg *arg)
{
	bool function = what && strchr("FfSs", what);
	const struct text_expr *value = text_expr(b, arg);
	struct text_piece *p = value ? text_piece_add(b, function ? TEXT_FUNCTION : TEXT_POINTER) : NULL;

	if (!p)
		return;
	p->value = value;
	p->offset = what == 'F' || what == 'S';
	if (function)
		tep_find_function(b->p->event->tep, 0); /* sorts the symbols, while nobody else asks */
}

void text_pointer_add(struct text_build *b, const struct text_conversion *c)
{
	struct text_spec spec = { .precision = -1 };
	struct text_piece *p;
	char kind[8] = { 0 };
	const char *s = memchr(c->s, 'p', c->len);

	/* flags and a width change nothing, and a '*' only how many bytes %ph shows */
	memcpy(kind, s + 1, c->len - (size_t)(s + 1 - c->s) < 7 ? c->len - (size_t)(s + 1 - c->s) : 7);
	spec.count = c->count ? text_expr(b, c->count) : NULL;
	if (c->arg->type == TEP_PRINT_FUNC)
		text_refuse(b, "a function of a plugin");
	else if (c->arg->type == TEP_PRINT_BSTRING)
		text_refuse(b, "a string of bprint's");
	if (b->ret)
		return;
	if (*kind == 'M' || *kind == 'm') {
		p = text_bytes_add(b, TEXT_MAC, c->arg, 6, "INVALIDMAC");
		if (!p)
			return;
		p->delim = kind[0] == 'm' ? "" : kind[1] == 'F' ? "-" : ":";
		p->reverse = kind[1] == 'R';
	} else if (*kind == 'I' || *kind == 'i') {
		text_ip_add(b, kind, c->arg);
	} else if (*kind == 'U') {
		p = text_bytes_add(b, TEXT_UUID, c->arg, 16, "INVALIDUUID");
		if (!p)
			return;
		p->upper = kind[1] == 'L' || kind[1] == 'B';
		p->reverse = kind[1] == 'L' || kind[1] == 'l';
	} else if (*kind == 'h') {
		text_dump_add(b, kind, &spec, c->arg);
	} else {
		text_address_add(b, *kind, c->arg);
	}
}

/* ---- running ------------------------------------------------------------------------ */

static void text_record_bytes(const struct text_record *r, size_t at, uint8_t *out, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (uint8_t)text_load(r, at + i, 1);
}

static void text_put_mac(struct text_pen *pen, const struct text_piece *p, const struct text_record *r)
{
	uint8_t v[6];

	text_record_bytes(r, p->at.offset, v, sizeof(v));
	for (size_t i = 0; i < sizeof(v); i++) {
		if (i)
			text_puts(pen, p->delim);
		text_put_byte(pen, v[p->reverse ? sizeof(v) - 1 - i : i], false);
	}
}

static void text_put_ip4(struct text_pen *pen, const uint8_t *v, bool reverse, bool leading)
{
	for (size_t i = 0; i < 4; i++) {
		uint8_t byte = v[reverse ? 3 - i : i];

		if (i)
			text_puts(pen, ".");
		if (leading && byte < 100)
			text_puts(pen, byte < 10 ? "00" : "0");
		text_put_decimal(pen, byte);
	}
}

/* Words of 0, from i on. */
static size_t text_zero_words(const uint16_t *w, size_t i, size_t n)
{
	size_t len = 0;

	while (i + len < n && !w[i + len])
		len++;
	return len;
}

/* RFC 5952: "::" for the first of the longest runs of zeros, an IPv4 address at the end as such. */
static void text_put_ip6_short(struct text_pen *pen, const uint8_t *v)
{
	uint16_t w[8];
	size_t n = 8, run = 0, longest = 1;
	bool mapped, isatap, colon = false;

	for (size_t i = 0; i < 8; i++)
		w[i] = (uint16_t)(v[2 * i] << 8 | v[2 * i + 1]);
	mapped = text_zero_words(w, 0, 5) == 5 && w[5] == 0xffff;
	isatap = (w[4] | 0x0200) == 0x0200 && w[5] == 0x5efe;
	n = mapped || isatap ? 6 : 8;
	for (size_t i = 0; i < n; i++)
		if (text_zero_words(w, i, n) > longest) {
			longest = text_zero_words(w, i, n);
			run = i;
		}
	for (size_t i = 0; i < n; i++) {
		bool gap = longest > 1 && i == run;

		text_puts(pen, colon ? ":" : "");
		if (gap)
			text_puts(pen, i ? ":" : "::");
		else
			text_put_hex(pen, w[i]);
		colon = !gap;
		i += gap ? longest - 1 : 0;
	}
	if (n < 8) {
		text_puts(pen, colon ? ":" : "");
		text_put_ip4(pen, v + 12, false, false);
	}
}

static void text_put_ip6(struct text_pen *pen, const struct text_piece *p, const uint8_t *v)
{
	if (p->compressed) {
		text_put_ip6_short(pen, v);
		return;
	}
	for (size_t i = 0; i < 16; i++) {
		if (i && i % 2 == 0 && p->colons)
			text_puts(pen, ":");
		text_put_byte(pen, v[i], false);
	}
}

static void text_put_port(struct text_pen *pen, const uint8_t *port)
{
	text_puts(pen, ":");
	text_put_decimal(pen, (uint64_t)port[0] << 8 | port[1]);
}

/* A struct sockaddr_in or sockaddr_in6. */
static void text_put_socket(struct text_pen *pen, const struct text_piece *p, const struct text_record *r)
{
	uint32_t len;
	size_t at = text_at(&p->at, r, &len);
	uint64_t family = text_load(r, at, 2);
	uint8_t v[28];

	text_record_bytes(r, at, v, sizeof(v));
	if (family == AF_INET && len < 16) {
		text_puts(pen, "INVALIDIPv4");
	} else if (family == AF_INET) {
		text_put_ip4(pen, v + 4, p->reverse, p->leading);
		if (p->port)
			text_put_port(pen, v + 2);
	} else if (family == AF_INET6 && len < 28) {
		text_puts(pen, "INVALIDIPv6");
	} else if (family == AF_INET6) {
		text_puts(pen, p->port ? "[" : "");
		text_put_ip6(pen, p, v + 8);
		text_puts(pen, p->port ? "]" : "");
		if (p->port)
			text_put_port(pen, v + 2);
	}
}

static void text_put_uuid(struct text_pen *pen, const struct text_piece *p, const struct text_record *r)
{
	static const uint8_t guid[] = { 3, 2, 1, 0, 5, 4, 7, 6 };

	for (size_t i = 0; i < 16; i++) {
		size_t from = p->reverse && i < sizeof(guid) ? guid[i] : i;

		if (i == 4 || i == 6 || i == 8 || i == 10)
			text_puts(pen, "-");
		text_put_byte(pen, (uint8_t)text_load(r, p->at.offset + from, 1), p->upper);
	}
}

static void text_put_dump(struct text_pen *pen, const struct text_piece *p, const struct text_record *r)
{
	uint64_t max = p->spec.count ? text_eval(p->spec.count, r) : 1;
	uint32_t len;
	size_t at = text_at(&p->at, r, &len);

	for (uint32_t i = 0; i < len && i < (uint32_t)max; i++) {
		if (i)
			text_puts(pen, p->delim);
		text_put_byte(pen, (uint8_t)text_load(r, at + i, 1), false);
	}
}

static void text_put_function(struct text_pen *pen, const struct text_piece *p, uint64_t address,
			      struct tep_handle *tep)
{
	const char *name = tep_find_function(tep, address);

	text_puts(pen, name ? name : "0x");
	if (!name) {
		text_put_hex(pen, address);
	} else if (p->offset) {
		text_puts(pen, "+0x");
		text_put_hex(pen, address - tep_find_function_address(tep, address));
	}
}

void text_put_pointer(struct text_pen *pen, const struct text_piece *p, const struct text_record *r,
		      struct tep_handle *tep)
{
	uint64_t address;
	uint8_t v[16];

	switch (p->kind) {
	case TEXT_FUNCTION:
		text_put_function(pen, p, text_eval(p->value, r), tep);
		break;
	case TEXT_MAC:
		text_put_mac(pen, p, r);
		break;
	case TEXT_IP4:
		text_record_bytes(r, p->at.offset, v, 4);
		text_put_ip4(pen, v, p->reverse, p->leading);
		break;
	case TEXT_IP6:
		text_record_bytes(r, p->at.offset, v, 16);
		text_put_ip6(pen, p, v);
		break;
	case TEXT_SOCKET:
		text_put_socket(pen, p, r);
		break;
	case TEXT_UUID:
		text_put_uuid(pen, p, r);
		break;
	case TEXT_BYTES:
		text_put_dump(pen, p, r);
		break;
	default:
		address = text_eval(p->value, r);
		text_puts(pen, address ? "0x" : "(nil)");
		if (address)
			text_put_hex(pen, address);
		break;
	}
}
