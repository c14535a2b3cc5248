#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
# The time stolen from a guest of the lab against the guest's own steal clock.
. tests/integration/lib.sh
. tests/integration/steal.sh

hyptrace=$build/hyptrace
check_steal tests/data/steal/trace.dat tests/data/steal/trace-Guest.dat

done_testing
