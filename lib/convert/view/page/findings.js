// SPDX-License-Identifier: LGPL-2.1-or-later
// Findings of hyptrace why without a question: what took most time from vCPUs, each with an example in the timeline.
"use strict";

// The span of the finding's vCPU that has most of the example {from, to}; null: the page does not show it.
function findingPlace(data, finding, { from, to }) {
	return spanWithMost(data.lanes.find((one) => one.kind === "vcpu"
		&& (one.name ? one.name + ":" + one.number === finding.vcpu : finding.vcpu.endsWith("-" + one.pid))), from, to);
}

function findingText(data, finding) {
	return finding.what + ": " + durationText(finding.lost_ns ?? finding.lost_ticks, data.ticks) + " in " + finding.count + " stretches, "
		+ (finding.share * 100).toFixed(1) + "% of " + finding.vcpu;
}

// onExample(part, place): the part of the time that has the longest stretch of a finding, and its span if there is one.
function showFindings(data, parent, onExample) {
	const { findings, notes = [] } = data.findings, list = element("ol");

	for (const finding of findings) {
		const line = element("li"), button = element("button", "longest");

		line.append(findingText(data, finding) + " ");
		if (finding.to) {
			const part = { from: answerTime(data, finding.from), to: answerTime(data, finding.to) };

			button.title = "Show the longest stretch in the timeline";
			button.addEventListener("click", () => onExample(part, findingPlace(data, finding, part)));
			line.append(button);
		}
		line.append(element("code", finding.report));
		list.append(line);
	}
	parent.append(element("summary", findings.length ? "What took most time from vCPUs? First of all " + findings[0].what : "What took most time from vCPUs?"),
		list, ...notes.map((note) => element("p", note)));
}
