// SPDX-License-Identifier: LGPL-2.1-or-later
/* Boxes and columns of spans over a graph of KernelShark, and the marks of a double click. */
#include "draw.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include <kernelshark/KsPluginsGUI.hpp>

#include "hyp-reason.h"

namespace
{
const int LEGEND_BELOW = 60; /* the uppermost graph begins above this */
const int LEGEND_BASE = 13;  /* of the text: over the times of the axis */
const int STRIP_ABOVE = 8;   /* pixels over the graph's top that the strip takes */
const int STRIP_HEIGHT = 18;
const int LANE_HEIGHT = 16; /* of crosvm and hypertrace spans */
const int LANE_STEP = 4;    /* less for one inside another */
const int LANE_LEAST = 4;
const int BOX_LEAST = 3;   /* columns; narrower spans are summed up */
const int BIN = 4;	   /* columns that are summed up together */
const float BIN_LEAST = 4; /* pixels */
const int TEXT_LEAST = 24; /* pixels */
const float FONT_SIZE = 13;
const int COLOURS = HYP_REASONS + 4;

/* The manual has them, and the test of the picture. */
const KsPlot::Color colours[COLOURS] = {
	{ 240, 228, 66 },		      /* smc */
	{ 86, 180, 233 },		      /* hvc */
	{ 204, 121, 167 },		      /* sys */
	{ 178, 132, 240 },		      /* psci */
	{ 244, 140, 60 },		      /* host_abort */
	{ 60, 200, 130 },		      /* guest_exit */
	{ 170, 170, 170 },		      /* not reasons of an entry */
	{ 170, 170, 170 }, { 170, 170, 170 }, /* unknown, or not given */
	{ 120, 205, 205 },		      /* crosvm */
	{ 250, 180, 195 },		      /* hypertrace */
	{ 230, 130, 30 },		      /* x86: exit */
	{ 150, 160, 175 },		      /* x86: halt */
};

const char *const kind_names[] = { "crosvm", "hypertrace", "exit", "halt" };

void *main_window;
const size_t NONE = std::numeric_limits<size_t>::max();
size_t selected = NONE; /* first row of the span that was clicked */

int colour_of(const struct shown *span)
{
	if (span->kind != SHOWN_HYP)
		return HYP_REASONS + span->kind - SHOWN_CROSVM;
	return span->reason >= 0 && span->reason < HYP_REASONS ? span->reason : HYP_UNKNOWN;
}

/* Visits and exits, which do not lie in each other; else a program's. */
bool is_strip(const struct shown *span)
{
	return span->kind == SHOWN_HYP || span->kind == SHOWN_EXIT || span->kind == SHOWN_HALT;
}

/* Loaded at the first drawing, when there is an OpenGL context. */
ksplot_font *font()
{
	static ksplot_font f;
	static bool tried;

	if (!tried)
		ksplot_init_font(&f, FONT_SIZE, TT_FONT_FILE);
	tried = true;
	return ksplot_font_is_loaded(&f) ? &f : nullptr;
}

float width_of(const ksplot_font *f, char c)
{
	return c < KS_SPACE_CHAR || c > KS_TILDA_CHAR ? 0 : f->cdata[c - KS_SPACE_CHAR].xadvance;
}

int width_of(const ksplot_font *f, const std::string &text)
{
	float width = 0;

	for (char c : text)
		width += width_of(f, c);
	return (int)width + 1;
}

std::string cut_to(const ksplot_font *f, const std::string &text, int width)
{
	size_t n = 0;

	for (float x = 0; n < text.size(); n++) {
		x += width_of(f, text[n]);
		if (x > (float)width)
			break;
	}
	return text.substr(0, n);
}

/* A double click puts the marks A and B on its ends, and shows its whole label, or hides it. */
class SpanBox : public KsPlot::Rectangle
{
      public:
	SpanBox(const kshark_trace_histo *histo, const struct shown *span)
	    : _begin(histo->data[span->first]), _end(histo->data[span->last]), _first(span->first)
	{
	}

	double distance(int x, int y) const override
	{
		bool inside = x >= pointX(0) && x <= pointX(2) && y >= pointY(0) && y <= pointY(2);

		return inside ? 0 : std::numeric_limits<double>::max();
	}

      private:
	void _doubleClick() const override
	{
		selected = selected == _first ? NONE : _first;
		if (!main_window)
			return;
		markEntryB(main_window, _end);
		markEntryA(main_window, _begin);
	}

	const kshark_entry *_begin, *_end;
	size_t _first;
};

void place(KsPlot::Rectangle *r, int left, int top, int right, int bottom, const KsPlot::Color &c)
{
	r->setPoint(0, left, top);
	r->setPoint(1, left, bottom);
	r->setPoint(2, right, bottom);
	r->setPoint(3, right, top);
	r->setFill(true);
	r->_color = c;
	r->_size = 1;
}

/* One graph, while spans are drawn over it. Shapes pushed later are drawn earlier. */
class Plot
{
      public:
	Plot(KsCppArgV *argv)
	    : _histo(argv->_histo), _graph(argv->_graph), _shapes(argv->_shapes), _bins(_graph->size()),
	      _shares((size_t)(_bins + BIN - 1) / BIN), _dots((size_t)_bins)
	{
	}

	void draw(const struct shown *const *v, size_t n)
	{
		for (size_t i = 0; i < n; i++)
			/* not one that the user has filtered out */
			if (v[i]->start <= _histo->max && v[i]->end >= _histo->min &&
			    _histo->data[v[i]->first]->visible & KS_GRAPH_VIEW_FILTER_MASK)
				_sort(v[i]);
		/* the shorter and inner ones over the others, text over all */
		std::stable_sort(
			_wide.begin(), _wide.end(),
			[](const struct shown *a, const struct shown *b) { return a->depth > b->depth; });
		_find_selected();
		for (const struct shown *s : _wide)
			_text(s);
		if (_selected) {
			KsPlot::Rectangle *frame = new KsPlot::Rectangle;

			_box(_selected);
			place(frame, _whole_left, _top(_selected), _whole_left + _whole_width,
			      _bottom(_selected), { 255, 255, 255 });
			_shapes->push_front(frame);
		}
		for (size_t i = 0; i < _shares.size(); i++)
			_draw_bin((int)i * BIN, _shares[i].time);
		for (const struct shown *s : _wide)
			if (s != _selected)
				_box(s);
	}

      private:
	double _column(int64_t ts) const
	{
		double range = (double)(_histo->max - _histo->min);
		double at = range > 0 ? (double)(ts - _histo->min) / range * _bins : 0;

		return std::min(std::max(at, 0.0), (double)_bins);
	}

	int _x(double column) const
	{
		return _graph->bin(0)._base.x() + (int)column;
	}

	/* Of crosvm's and hypertrace's spans within one column, one of each depth is drawn. */
	bool _is_first_of_column(const struct shown *s, double from, double to)
	{
		size_t column = (size_t)std::min((int)from, _bins - 1);
		uint8_t bit =
			(uint8_t)(1u << (std::min(s->depth, 3u) + (s->kind == SHOWN_HYPERTRACE ? 4 : 0)));
		bool first = !(_dots[column] & bit);

		if (to - from >= 1)
			return true;
		_dots[column] |= bit;
		return first;
	}

	void _sort(const struct shown *s)
	{
		double from = _column(s->start), to = _column(s->end);

		if (!is_strip(s)) {
			if (_is_first_of_column(s, from, to))
				_wide.push_back(s);
			return;
		}
		if (to - from >= BOX_LEAST) {
			_wide.push_back(s);
			return;
		}
		for (size_t i = (size_t)from / BIN; i < _shares.size() && i * BIN <= to; i++)
			_shares[i].time[colour_of(s)] +=
				(float)(std::min(to, (i + 1.0) * BIN) - std::max(from, (double)(i * BIN)));
	}

	int _strip_bottom() const
	{
		return _graph->base() - _graph->height() - STRIP_ABOVE + STRIP_HEIGHT;
	}

	int _bottom(const struct shown *s) const
	{
		return is_strip(s) ? _strip_bottom() : _graph->base() - 1;
	}

	int _top(const struct shown *s) const
	{
		int less = LANE_STEP * (int)std::min(s->depth, 100u);

		if (is_strip(s))
			return _bottom(s) - STRIP_HEIGHT;
		return _bottom(s) - std::max(LANE_HEIGHT - less, LANE_LEAST);
	}

	void _box(const struct shown *s)
	{
		SpanBox *box = new SpanBox(_histo, s);
		KsPlot::Color c = colours[colour_of(s)];
		int left = _x(_column(s->start)), right = _x(_column(s->end));

		if (s->depth % 2)
			c.blend(.6f);
		place(box, left, _top(s), std::max(right, left + 1), _bottom(s), c);
		_shapes->push_front(box);
	}

	static std::string _label_of(const kshark_trace_histo *histo, const struct shown *s)
	{
		char *said = scan_label(histo, s);
		std::string label = said ? said : "";

		free(said);
		return label;
	}

	/* The whole label of the span that was clicked, from its left end if there is room. */
	void _find_selected()
	{
		for (const struct shown *s : _wide)
			if (s->first == selected)
				_selected = s;
		if (!_selected || !font())
			return;
		_whole = _label_of(_histo, _selected);
		_whole_width = width_of(font(), _whole) + font()->height / 2;
		_whole_left =
			std::max(std::min(_x(_column(_selected->start)), _x(_bins) - _whole_width), _x(0));
	}

	/* Under the label of the selected one there is no room for others. */
	bool _is_covered(const struct shown *s, int left, int right) const
	{
		return _selected && is_strip(s) == is_strip(_selected) && left < _whole_left + _whole_width &&
		       right > _whole_left;
	}

	void _text(const struct shown *s)
	{
		int left = _x(_column(s->start)), right = _x(_column(s->end));
		int room = right - left - 6;

		if (!font())
			return;
		if (s == _selected)
			_put_text(_whole, _whole_left, s);
		else if (room >= TEXT_LEAST && !s->depth && !_is_covered(s, left, right))
			_put_text(cut_to(font(), _label_of(_histo, s), room), left, s);
	}

	void _put_text(const std::string &text, int left, const struct shown *s)
	{
		KsPlot::TextBox *box =
			new KsPlot::TextBox(font(), text, KsPlot::Color(), KsPlot::Point(left, _bottom(s)));

		box->_size = 1;
		_shapes->push_front(box);
	}

	/* As tall as the hypervisor's share, a third less for each tenth of it; a pixel at least for each
	 * reason. */
	void _draw_bin(int column, const float *time)
	{
		float sum = std::accumulate(time, time + COLOURS, 0.f), up_to = 0;
		float tall =
			std::max(BIN_LEAST, STRIP_HEIGHT * (1 + std::log10(std::min(sum / BIN, 1.f)) / 3));
		int y = _strip_bottom();

		for (int i = 0; i < COLOURS; i++) {
			KsPlot::Rectangle *part;
			int top;

			if (time[i] <= 0)
				continue;
			up_to += time[i];
			top = std::min(y - 1, _strip_bottom() - (int)(up_to / sum * tall + .5f));
			part = new KsPlot::Rectangle;
			place(part, _x(column), top, _x(std::min(column + BIN, _bins)), y, colours[i]);
			_shapes->push_front(part);
			y = top;
		}
	}

	const kshark_trace_histo *_histo;
	const KsPlot::Graph *_graph;
	KsPlot::PlotObjList *_shapes;
	int _bins;
	struct shares {
		float time[COLOURS]; /* in columns */
	};
	std::vector<shares> _shares; /* by bin */
	std::vector<uint8_t> _dots;  /* by column: what _is_first_of_column has seen there */
	std::vector<const struct shown *> _wide;
	const struct shown *_selected = nullptr;
	std::string _whole;
	int _whole_left = 0, _whole_width = 0;
};
/* Boxes of the colours and their names, from left to right. */
class Legend
{
      public:
	Legend(KsCppArgV *argv) : _shapes(argv->_shapes), _x(argv->_graph->bin(0)._base.x())
	{
	}

	void add(const char *name, int colour)
	{
		KsPlot::Rectangle *box = new KsPlot::Rectangle;
		KsPlot::TextBox *text;

		place(box, _x, LEGEND_BASE - 2 - BOX, _x + BOX, LEGEND_BASE - 2, colours[colour]);
		_x += BOX + 4;
		text = new KsPlot::TextBox(font(), name, KsPlot::Color(), KsPlot::Point(_x, LEGEND_BASE));
		text->_size = 1;
		_x += width_of(font(), name) + BOX;
		_shapes->push_front(box);
		_shapes->push_front(text);
	}

      private:
	static const int BOX = 8;

	KsPlot::PlotObjList *_shapes;
	int _x;
};
} // namespace

void draw_spans(KsCppArgV *argv, const struct shown *const *v, size_t n)
{
	if (n && argv->_graph && argv->_graph->size() > 0)
		Plot(argv).draw(v, n);
}

void draw_colours(KsCppArgV *argv, const struct spans *spans)
{
	const KsPlot::Graph *graph = argv->_graph;

	if (!font() || !graph || graph->size() < 1 || graph->base() - graph->height() > LEGEND_BELOW)
		return;
	Legend legend(argv);
	for (int i = 0; i < HYP_REASONS; i++)
		if (spans_reasons(spans) & 1u << i)
			legend.add(hyp_reason_names[i], i);
	for (int i = SHOWN_CROSVM; i < SHOWN_KINDS; i++)
		if (spans_count(spans, (enum shown_kind)i))
			legend.add(kind_names[i - SHOWN_CROSVM], HYP_REASONS + i - SHOWN_CROSVM);
}

void draw_init(void *window)
{
	main_window = window;
}

void draw_unselect()
{
	selected = NONE;
}
