// SPDX-License-Identifier: LGPL-2.1-or-later
// Search for spans by what their names say.
"use strict";

class Search {
	constructor(timeline, choose) {
		Object.assign(this, { timeline, choose, hits: [], at: -1 });
	}

	// Finds the spans in whose names the text occurs, in the order of time. Returns the line to show.
	find(text) {
		const { data } = this.timeline, wanted = text.trim().toLowerCase();

		this.hits = [];
		this.at = -1;
		this.timeline.matches = wanted ? data.labels.map((label) => searchText(label).includes(wanted) ? 1 : 0) : null;
		if (wanted)
			for (const lane of data.lanes)
				for (let i = 0; i < lane.spans.n; i++)
					if (this.timeline.matches[lane.spans.label[i]])
						this.hits.push({ lane, i });
		this.hits.sort((a, b) => a.lane.spans.from[a.i] - b.lane.spans.from[b.i]);
		this.timeline.redraw();
		return wanted ? this.hits.length + " spans" : "";
	}

	// Goes to the next (1) or previous (-1) span: at first to the next one in the part that is shown.
	step(by) {
		const { timeline, hits } = this;

		if (!hits.length)
			return "";
		if (this.at < 0)
			this.at = Math.max(0, hits.findIndex((hit) => hit.lane.spans.from[hit.i] >= timeline.from));
		else
			this.at = (this.at + by + hits.length) % hits.length;
		this.choose(hits[this.at]);
		return this.at + 1 + " of " + hits.length;
	}
}

function searchText(label) {
	return [label.state, label.by, label.reason, label.exitClass, label.task, label.other].join("\n").toLowerCase();
}
