-- SPDX-License-Identifier: LGPL-2.1-or-later
-- The tables whose rows SQLite keeps (file-tables.c). Documentation/tables.md describes them; _option is for views.

CREATE TABLE recordings(machine_id INTEGER PRIMARY KEY, machine TEXT, path TEXT, guest INTEGER, clock TEXT,
  utc_max_error INTEGER, utc_est_error INTEGER, tai_offset INTEGER, trace_id TEXT, program TEXT, node TEXT, release TEXT,
  arch TEXT, from_ts INTEGER, to_ts INTEGER, from_utc INTEGER, to_utc INTEGER);
CREATE TABLE cpus(machine TEXT, cpu INTEGER, machine_id INTEGER);
CREATE TABLE vcpus(machine TEXT, guest TEXT, vcpu INTEGER, tid INTEGER, machine_id INTEGER);
CREATE TABLE _option(machine_id INTEGER, id INTEGER, number INTEGER, text TEXT);
CREATE TABLE clocks(machine TEXT, ts INTEGER, guest_ts INTEGER, "offset" INTEGER, bound INTEGER, method TEXT,
  class TEXT, machine_id INTEGER);

-- Those that all of the files are read for
CREATE TABLE threads(id INTEGER, machine TEXT, tid INTEGER, name TEXT, machine_id INTEGER);
CREATE TABLE spans(ts INTEGER, dur INTEGER, machine TEXT, cpu INTEGER, tid INTEGER, client TEXT, name TEXT,
  parent TEXT, depth INTEGER, own_dur INTEGER, ts_bound INTEGER, machine_id INTEGER, utc_ns INTEGER,
  utc_bound INTEGER);
CREATE TABLE latency(preset TEXT, ts INTEGER, dur INTEGER, machine TEXT, cpu INTEGER, tid INTEGER, guest TEXT,
  vcpu INTEGER, queue TEXT, stage1 INTEGER, stage2 INTEGER, stage3 INTEGER, stage4 INTEGER, stage5 INTEGER,
  bound INTEGER, machine_id INTEGER, utc_ns INTEGER, utc_bound INTEGER);
CREATE TABLE findings(ts INTEGER, dur INTEGER, machine TEXT, guest TEXT, vcpu INTEGER, tid INTEGER, what TEXT,
  lost INTEGER, stretches INTEGER, share_ppm INTEGER, machine_id INTEGER, utc_ns INTEGER, utc_bound INTEGER);

-- A table of version 1
CREATE VIEW machines(id, name, path, guest, clock, utc_max_error, utc_est_error, tai_offset) AS
SELECT machine_id, machine, path, guest, clock, utc_max_error, utc_est_error, tai_offset FROM recordings;
