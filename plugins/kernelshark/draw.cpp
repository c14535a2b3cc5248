// SPDX-License-Identifier: LGPL-2.1-or-later
/* Boxes and columns of spans over a graph of KernelShark, and the marks of a double click. */
#include "draw.hpp"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include <kernelshark/KsPluginsGUI.hpp>

#include "hyp-reason.h"

namespace
{
const int STRIP_ABOVE = 8; /* pixels over the graph's top that the strip takes */
const int STRIP_HEIGHT = 18;
const int LANE_HEIGHT = 16; /* of crosvm and hypertrace spans */
const int LANE_STEP = 4;    /* less for one inside another */
const int LANE_LEAST = 4;
const int BOX_LEAST = 3; /* columns; narrower spans are summed up */
const int COLUMN_LEAST = 3;
const int TEXT_LEAST = 24; /* pixels */
const float FONT_SIZE = 13;
const int COLOURS = HYP_REASONS + 2;

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
};

void *main_window;
const size_t NONE = std::numeric_limits<size_t>::max();
size_t selected = NONE; /* first row of the span that was clicked */

int colour_of(const struct span *span)
{
	if (span->kind == SPAN_CROSVM)
		return HYP_REASONS;
	if (span->kind == SPAN_HYPERTRACE)
		return HYP_REASONS + 1;
	return span->reason >= 0 && span->reason < HYP_REASONS ? span->reason : HYP_UNKNOWN;
}

/* ---- text --------------------------------------------------------------------- */

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

/* ---- shapes ----------------------------------------------------------------------- */

/* A double click puts the marks A and B on its ends, and shows its whole label, or hides it. */
class SpanBox : public KsPlot::Rectangle
{
      public:
	SpanBox(const kshark_trace_histo *histo, const struct span *span)
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
	      _columns((size_t)_bins * COLOURS), _dots((size_t)_bins)
	{
	}

	void draw(const struct span *const *v, size_t n)
	{
		for (size_t i = 0; i < n; i++)
			if (v[i]->start <= _histo->max && v[i]->end >= _histo->min && _visible(v[i]))
				_sort(v[i]);
		/* the shorter and inner ones over the others, text over all */
		std::stable_sort(_wide.begin(), _wide.end(), [](const struct span *a, const struct span *b) {
			return a->depth > b->depth;
		});
		_find_selected();
		for (const struct span *s : _wide)
			_text(s);
		if (_selected) {
			_box(_selected);
			_frame();
		}
		_draw_columns();
		for (const struct span *s : _wide)
			if (s != _selected)
				_box(s);
	}

      private:
	/* What the user has filtered out stays away. */
	bool _visible(const struct span *s) const
	{
		return _histo->data[s->first]->visible & KS_GRAPH_VIEW_FILTER_MASK;
	}

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
	bool _is_first_of_column(const struct span *s, double from, double to)
	{
		size_t column = (size_t)std::min((int)from, _bins - 1);
		uint8_t bit =
			(uint8_t)(1u << (std::min(s->depth, 3u) + (s->kind == SPAN_HYPERTRACE ? 4 : 0)));
		bool first = !(_dots[column] & bit);

		if (to - from >= 1)
			return true;
		_dots[column] |= bit;
		return first;
	}

	void _sort(const struct span *s)
	{
		double from = _column(s->start), to = _column(s->end);

		if (s->kind != SPAN_HYP) {
			if (_is_first_of_column(s, from, to))
				_wide.push_back(s);
			return;
		}
		if (to - from >= BOX_LEAST) {
			_wide.push_back(s);
			return;
		}
		for (int c = (int)from; c < _bins && c <= to; c++)
			_columns[(size_t)c * COLOURS + (size_t)colour_of(s)] +=
				(float)(std::min(to, c + 1.0) - std::max(from, (double)c));
	}

	int _bottom(const struct span *s) const
	{
		if (s->kind == SPAN_HYP)
			return _graph->base() - _graph->height() - STRIP_ABOVE + STRIP_HEIGHT;
		return _graph->base() - 1;
	}

	int _top(const struct span *s) const
	{
		int less = LANE_STEP * (int)std::min(s->depth, 100u);

		if (s->kind == SPAN_HYP)
			return _bottom(s) - STRIP_HEIGHT;
		return _bottom(s) - std::max(LANE_HEIGHT - less, LANE_LEAST);
	}

	void _box(const struct span *s)
	{
		SpanBox *box = new SpanBox(_histo, s);
		KsPlot::Color c = colours[colour_of(s)];
		int left = _x(_column(s->start)), right = _x(_column(s->end));

		if (s->depth % 2)
			c.blend(.6f);
		place(box, left, _top(s), std::max(right, left + 1), _bottom(s), c);
		_shapes->push_front(box);
	}

	static std::string _label_of(const kshark_trace_histo *histo, const struct span *s)
	{
		char *said = scan_label(histo, s);
		std::string label = said ? said : "";

		free(said);
		return label;
	}

	/* The whole label of the span that was clicked, from its left end if there is room. */
	void _find_selected()
	{
		for (const struct span *s : _wide)
			if (s->first == selected)
				_selected = s;
		if (!_selected || !font())
			return;
		_whole = _label_of(_histo, _selected);
		_whole_width = width_of(font(), _whole) + font()->height / 2;
		_whole_left =
			std::max(std::min(_x(_column(_selected->start)), _x(_bins) - _whole_width), _x(0));
	}

	void _frame()
	{
		KsPlot::Rectangle *frame = new KsPlot::Rectangle;

		place(frame, _whole_left, _top(_selected), _whole_left + _whole_width, _bottom(_selected),
		      { 255, 255, 255 });
		_shapes->push_front(frame);
	}

	/* Under the label of the selected one there is no room for others. */
	bool _is_covered(const struct span *s, int left, int right) const
	{
		return _selected && (s->kind == SPAN_HYP) == (_selected->kind == SPAN_HYP) &&
		       left < _whole_left + _whole_width && right > _whole_left;
	}

	void _text(const struct span *s)
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

	void _put_text(const std::string &text, int left, const struct span *s)
	{
		KsPlot::TextBox *box =
			new KsPlot::TextBox(font(), text, KsPlot::Color(), KsPlot::Point(left, _bottom(s)));

		box->_size = 1;
		_shapes->push_front(box);
	}

	void _draw_column(int c)
	{
		const float *share = &_columns[(size_t)c * COLOURS];
		const float *most = std::max_element(share, share + COLOURS);
		float sum = 0;
		int bottom = _graph->base() - _graph->height() - STRIP_ABOVE + STRIP_HEIGHT;
		KsPlot::Rectangle *column;

		for (int i = 0; i < COLOURS; i++)
			sum += share[i];
		if (sum <= 0)
			return;
		column = new KsPlot::Rectangle;
		place(column, _x(c),
		      bottom - std::max(COLUMN_LEAST, (int)(std::min(sum, 1.f) * STRIP_HEIGHT)), _x(c) + 1,
		      bottom, colours[most - share]);
		_shapes->push_front(column);
	}

	void _draw_columns()
	{
		for (int c = 0; c < _bins; c++)
			_draw_column(c);
	}

	const kshark_trace_histo *_histo;
	const KsPlot::Graph *_graph;
	KsPlot::PlotObjList *_shapes;
	int _bins;
	std::vector<float> _columns; /* by column and colour: share of the column's time */
	std::vector<uint8_t> _dots;  /* by column: what _is_first_of_column has seen there */
	std::vector<const struct span *> _wide;
	const struct span *_selected = nullptr;
	std::string _whole;
	int _whole_left = 0, _whole_width = 0;
};
} // namespace

void draw_spans(KsCppArgV *argv, const struct span *const *v, size_t n)
{
	if (n && argv->_graph && argv->_graph->size() > 0)
		Plot(argv).draw(v, n);
}

void draw_init(void *window)
{
	main_window = window;
}

void draw_unselect()
{
	selected = NONE;
}
