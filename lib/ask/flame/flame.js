// SPDX-License-Identifier: LGPL-2.1-or-later
// The script in a flame graph. Frames are <g class="f" data-x data-w data-d>: where they begin and how wide they are, as
// shares of the whole, and their depth; the title's first line is the name.
(function () {
'use strict';
var svg = document.currentScript.ownerSVGElement, EPS = 1e-7;
var left = +svg.dataset.left, width = +svg.dataset.width, letter = +svg.dataset.letter;
function one(id) { return svg.getElementById(id); }
var hovered = one('hovered'), found = one('found'), reset = one('reset'), input = one('input');
var frames = [].map.call(svg.querySelectorAll('g.f'), function (g) {
	var title = g.querySelector('title').textContent.split('\n');
	return { g: g, rect: g.querySelector('rect'), text: g.querySelector('text'), name: title[0],
		whole: title.join('  '), x: +g.dataset.x, w: +g.dataset.w, d: +g.dataset.d };
});
var ticks = [].map.call(svg.querySelectorAll('.tick[text-anchor=middle]'), function (t) {
	return { t: t, share: +t.textContent };
});

/* x, w: shares of what is shown */
function place(f, x, w) {
	var letters = Math.floor((w * width - 6) / letter), name = f.name;
	if (name.length > letters)
		name = letters < 3 ? '' : name.slice(0, letters - 1) + '\u2026';
	f.g.style.display = w * width < 0.2 ? 'none' : '';
	f.rect.setAttribute('x', (left + x * width).toFixed(2));
	f.rect.setAttribute('width', Math.max(w * width - 0.4, 0.2).toFixed(2));
	f.text.setAttribute('x', (left + x * width + 3).toFixed(2));
	f.text.textContent = name;
}

function spans(outer, f) {
	return outer.x <= f.x + EPS && outer.x + outer.w >= f.x + f.w - EPS;
}

function zoom(to) {
	frames.forEach(function (f) {
		var bears = f.d < to.d && spans(f, to);
		f.g.classList.toggle('bears', bears);
		if (bears || f === to)
			place(f, 0, 1);
		else if (f.d > to.d && spans(to, f))
			place(f, (f.x - to.x) / to.w, f.w / to.w);
		else
			f.g.style.display = 'none';
	});
	ticks.forEach(function (k) { k.t.textContent = +(k.share * to.w).toPrecision(3); });
	reset.style.display = to === frames[0] ? 'none' : '';
}

/* A pattern, or a text where it is none; what stands on a match is not counted again. */
function search(what) {
	var share = 0, count = 0, until = -1, pattern = null;
	try {
		pattern = what ? new RegExp(what, 'i') : null;
	} catch (e) {
		pattern = new RegExp(what.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'), 'i');
	}
	frames.forEach(function (f) {
		var hit = !!pattern && f.d > 0 && pattern.test(f.name);
		f.g.classList.toggle('hit', hit);
		if (!hit)
			return;
		count++;
		if (f.x + f.w / 2 > until) {
			share += f.w;
			until = f.x + f.w;
		}
	});
	found.textContent = pattern ? count + ' found, ' + (100 * share).toFixed(2) + ' %' : '';
}

function frame_of(node) {
	var g = node.closest ? node.closest('g.f') : null;
	return g && frames.filter(function (f) { return f.g === g; })[0];
}
svg.addEventListener('click', function (e) {
	var f = frame_of(e.target);
	if (f)
		zoom(f);
	else if (reset.contains(e.target))
		zoom(frames[0]);
});
svg.addEventListener('mouseover', function (e) {
	var f = frame_of(e.target);
	hovered.textContent = f ? f.whole : '';
});
input.addEventListener('input', function () { search(input.value); });
window.addEventListener('keydown', function (e) {
	if (e.key === 'Escape') {
		input.value = '';
		search('');
		zoom(frames[0]);
	} else if (e.key === '/' || (e.key === 'f' && (e.ctrlKey || e.metaKey))) {
		if (document.activeElement === input)
			return;
		e.preventDefault();
		input.focus();
	}
});
one('tools').style.display = '';
zoom(frames[0]);
})();
