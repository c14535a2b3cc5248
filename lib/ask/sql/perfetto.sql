-- SPDX-License-Identifier: LGPL-2.1-or-later
-- Perfetto's tables, with its columns and meanings, as views of hyptrace's. A utid is the machine's number and
-- the tid, a upid the utid of the process's first thread, a ucpu the machine's number times 4096 and the CPU, as
-- in Perfetto. Tracks: below 4096 those of the hypervisor; others by kind, machine and number. Views whose name
-- begins with _ are for others here. A comment is a line of its own: the Makefile leaves it out.

-- UNAME (5) is "Linux HOST RELEASE VERSION... MACHINE", VERSION (9) names the program that recorded
CREATE VIEW _uname AS
SELECT machine_id, system, substr(rest, 1, instr(rest, ' ') - 1) AS release, substr(rest, instr(rest, ' ') + 1) AS rest
FROM (SELECT machine_id, system, substr(rest, instr(rest, ' ') + 1) AS rest
  FROM (SELECT machine_id, substr(text, 1, instr(text, ' ') - 1) AS system, substr(text, instr(text, ' ') + 1) AS rest
    FROM _option WHERE id = 5));
CREATE VIEW metadata(id, name, key_type, int_value, str_value, machine_id, trace_id) AS
SELECT NULL, name, 'single', NULL, str_value, machine_id, NULL FROM (
  SELECT machine_id, 'system_name' AS name, system AS str_value FROM _uname
  UNION ALL SELECT machine_id, 'system_release', release FROM _uname
  UNION ALL SELECT machine_id, 'system_version', rtrim(rtrim(rest, replace(rest, ' ', ''))) FROM _uname
  UNION ALL SELECT machine_id, 'system_machine', substr(rest, length(rtrim(rest, replace(rest, ' ', ''))) + 1)
    FROM _uname
  UNION ALL SELECT machine_id, 'tracing_service_version', text FROM _option WHERE id = 9)
WHERE str_value <> '';

CREATE VIEW machine(id, raw_id, name, sysname, release, version, arch) AS
SELECT machine_id, machine_id, machine,
  (SELECT str_value FROM metadata AS d WHERE d.machine_id = m.machine_id AND d.name = 'system_name'),
  (SELECT str_value FROM metadata AS d WHERE d.machine_id = m.machine_id AND d.name = 'system_release'),
  (SELECT str_value FROM metadata AS d WHERE d.machine_id = m.machine_id AND d.name = 'system_version'),
  (SELECT str_value FROM metadata AS d WHERE d.machine_id = m.machine_id AND d.name = 'system_machine')
FROM recordings AS m;

CREATE VIEW cpu(id, ucpu, cpu, cluster_id, processor, machine_id, capacity, arg_set_id) AS
SELECT machine_id << 12 | cpu, machine_id << 12 | cpu, cpu, NULL, NULL, machine_id, NULL, NULL FROM cpus;

CREATE VIEW trace_bounds(start_ts, end_ts) AS SELECT trace_start(), trace_end();

CREATE VIEW ftrace_event(id, ts, name, cpu, utid, arg_set_id, common_flags, ucpu, tid) AS
SELECT id, ts, name, cpu, machine_id << 32 | tid, arg_set_id, NULL, machine_id << 12 | cpu, tid FROM events;
CREATE VIEW raw(id, ts, name, cpu, utid, arg_set_id, common_flags, ucpu, tid) AS
SELECT id, ts, name, cpu, machine_id << 32 | tid, arg_set_id, NULL, machine_id << 12 | cpu, tid FROM events;

-- Losses, by CPU
CREATE VIEW stats(id, name, key, idx, severity, source, value, description, machine_id, trace_id) AS
SELECT NULL, name, NULL, idx, 'data_loss', 'trace', value, description, machine_id, NULL FROM (
  SELECT 'ftrace_cpu_has_data_loss' AS name, cpu AS idx, 1 AS value, machine_id,
    'events were lost on this CPU' AS description
  FROM lost GROUP BY machine_id, cpu
  UNION ALL
  SELECT 'ftrace_cpu_overrun_delta', cpu, n, machine_id, 'events lost, where it is known how many'
  FROM (SELECT machine_id, cpu, coalesce(iif(count(events) = count(*), sum(events), max((
      SELECT sum(CAST(substr(text, 9 + instr(text, 'overrun: ')) AS INTEGER)) FROM _option AS o WHERE o.id = 2 AND
      o.machine_id = lost.machine_id AND text LIKE 'CPU: ' || lost.cpu || char(10) || '%'))), sum(events)) AS n
    FROM lost GROUP BY machine_id, cpu) WHERE n > 0)
UNION ALL
SELECT NULL, 'mismatched_sched_switch_tids', NULL, NULL, 'error', 'analysis',
  count(*), 'switches away from another task than was switched to', machine_id, NULL
FROM _run WHERE id IS NOT NULL AND next_id IS NOT NULL AND NOT follows GROUP BY machine_id;

-- A task's state as the kernel prints it since 4.14
CREATE VIEW _switch AS
SELECT id, ts, machine_id, buffer, cpu, extract_arg(id, 'prev_pid') AS prev_tid,
  extract_arg(id, 'prev_comm') AS prev_comm,
  CASE extract_arg(id, 'prev_state') & 255 WHEN 0 THEN iif(extract_arg(id, 'prev_state') & 256, 'R+', 'R')
    WHEN 1 THEN 'S' WHEN 2 THEN 'D' WHEN 4 THEN 'T' WHEN 8 THEN 't' WHEN 16 THEN 'X' WHEN 32 THEN 'Z'
    WHEN 64 THEN 'P' WHEN 128 THEN 'I' END AS prev_state,
  extract_arg(id, 'next_pid') AS tid, extract_arg(id, 'next_comm') AS comm, extract_arg(id, 'next_prio') AS prio
FROM events WHERE name = 'sched_switch';

-- follows: the CPU's next switch is away from this task, and nothing was lost in between
CREATE VIEW _run AS
SELECT id, ts, machine_id, cpu, tid, prio, lead(ts) OVER w AS end_ts, lead(id) OVER w AS next_id,
  lead(prev_state) OVER w AS end_state, lead(prev_tid) OVER w IS tid AND lead(id) OVER w IS NOT NULL AS follows
FROM (SELECT id, ts, machine_id, buffer, cpu, prev_tid, prev_state, tid, prio FROM _switch
  UNION ALL SELECT NULL, ts, machine_id, buffer, cpu, NULL, NULL, NULL, NULL FROM lost)
WINDOW w AS (PARTITION BY machine_id, buffer, cpu ORDER BY ts, id);

CREATE VIEW sched_slice(id, ts, dur, cpu, utid, end_state, priority, ucpu) AS
SELECT id, ts, iif(follows, end_ts - ts, -1), cpu, machine_id << 32 | tid, iif(follows, end_state, NULL), prio,
  machine_id << 12 | cpu FROM _run WHERE id IS NOT NULL;
CREATE VIEW sched(id, ts, dur, cpu, utid, end_state, priority, ucpu, ts_end) AS
SELECT id, ts, dur, cpu, utid, end_state, priority, ucpu, ts + dur FROM sched_slice;

-- kind: 0 leaves a CPU, 1 gets one, 2 is woken or made. losses: of the buffer until then
CREATE VIEW _step AS
SELECT *, count(*) FILTER (WHERE kind IS NULL) OVER (PARTITION BY machine_id, buffer ORDER BY ts, id) AS losses
FROM (SELECT id, ts, 0 AS kind, machine_id, buffer, prev_tid AS tid, NULL AS cpu, prev_state AS state, NULL AS waker
  FROM _switch
  UNION ALL SELECT id, ts, 1, machine_id, buffer, tid, cpu, 'Running', NULL FROM _switch
  UNION ALL SELECT id, ts, 2, machine_id, buffer, extract_arg(id, 'pid'), NULL, 'R', machine_id << 32 | tid
  FROM events WHERE name IN ('sched_waking', 'task_newtask')
  UNION ALL SELECT NULL, ts, NULL, machine_id, buffer, NULL, NULL, NULL, NULL FROM lost);

-- To wake a task that can run already changes nothing; a loss leaves the end of what was before unknown
CREATE VIEW _state AS
SELECT id, ts, kind, machine_id, tid, cpu, state, waker, lead(ts) OVER w AS end_ts, lead(kind) OVER w AS next_kind,
  lead(losses) OVER w - losses AS lost
FROM (SELECT *, lag(kind) OVER v AS last_kind, lag(state) OVER v AS last_state, losses - lag(losses) OVER v AS lost
  FROM _step WHERE tid <> 0 WINDOW v AS (PARTITION BY machine_id, tid ORDER BY ts, id, kind))
WHERE kind <> 2 OR last_kind IS NULL OR lost OR (last_kind = 0 AND last_state <> 'R')
WINDOW w AS (PARTITION BY machine_id, tid ORDER BY ts, id, kind);

-- By machine, and not flattened: SQLite takes _state alone for too few rows to make an index for a LEFT JOIN
CREATE VIEW thread_state(id, ts, dur, cpu, utid, state, io_wait, blocked_function, waker_utid, waker_id,
  irq_context, ucpu) AS
SELECT id << 2 | kind, ts, iif(end_ts IS NULL OR lost OR (next_kind = 0 AND kind <> 1), -1, end_ts - ts), cpu,
  machine_id << 32 | tid, state, NULL, NULL, waker, NULL, NULL, machine_id << 12 | cpu
FROM (SELECT _state.* FROM recordings AS m CROSS JOIN _state ON _state.machine_id = m.machine_id LIMIT -1);

-- Processes that files name, and those whose begin or exec was recorded
CREATE VIEW process(upid, id, pid, name, start_ts, end_ts, parent_upid, uid, android_appid, android_user_id,
  cmdline, arg_set_id, machine_id) AS
SELECT machine_id << 32 | pid, machine_id << 32 | pid, pid, max(name), max(ts), NULL, NULL, NULL, NULL, NULL,
  max(cmdline), NULL, machine_id
FROM (SELECT machine_id, 0 AS pid, NULL AS name, NULL AS ts, NULL AS cmdline FROM recordings
  UNION ALL SELECT machine_id, number, substr(rest, length(rtrim(rest, replace(rest, '/', ''))) + 1), NULL, rest
    FROM (SELECT machine_id, number, substr(rest, instr(rest, ' ') + 1) AS rest
      FROM (SELECT machine_id, number, substr(text, instr(text, ' ') + 1) AS rest FROM _option WHERE id = 10))
  UNION ALL SELECT machine_id, extract_arg(id, 'pid'),
    substr(extract_arg(id, 'filename'), length(rtrim(extract_arg(id, 'filename'),
      replace(extract_arg(id, 'filename'), '/', ''))) + 1), NULL, extract_arg(id, 'filename')
    FROM events WHERE name = 'sched_process_exec'
  UNION ALL SELECT machine_id, extract_arg(id, 'pid'), extract_arg(id, 'comm'), ts, NULL
    FROM events WHERE name = 'task_newtask' AND NOT extract_arg(id, 'clone_flags') & 65536)
GROUP BY machine_id, pid;

-- Tasks that files name, and those that ran or were woken; the last name that was seen
CREATE VIEW thread(utid, id, tid, name, start_ts, end_ts, upid, is_main_thread, is_idle, machine_id, arg_set_id) AS
SELECT utid, utid, utid & 4294967295, name, NULL, NULL, iif(utid IN (SELECT upid FROM process), utid, NULL),
  iif(utid IN (SELECT upid FROM process), 1, NULL), utid & 4294967295 = 0, utid >> 32, NULL
FROM (SELECT utid, name, max(ts)
  FROM (SELECT machine_id << 32 | tid AS utid, name, -1 AS ts FROM threads WHERE tid <> 0
    UNION ALL SELECT machine_id << 32, 'swapper', -1 FROM recordings
    UNION ALL SELECT machine_id << 32 | tid, comm, ts FROM _switch WHERE tid <> 0
    UNION ALL SELECT machine_id << 32 | prev_tid, prev_comm, ts FROM _switch WHERE prev_tid <> 0
    UNION ALL SELECT machine_id << 32 | extract_arg(id, 'pid'), extract_arg(id, 'comm'), ts
      FROM events WHERE name IN ('sched_waking', 'sched_process_exit', 'task_newtask'))
  GROUP BY utid);

-- B and E of trace_marker. level: how many are open below; an E without a B is passed over
CREATE VIEW _mark AS
SELECT id, ts, utid, begins, name, depth - min(0, min(depth) OVER w) - begins AS level, row_number() OVER w AS n
FROM (SELECT id, ts, utid, begins, name, sum(iif(begins, 1, -1)) OVER (PARTITION BY utid ORDER BY ts, id) AS depth
  FROM (SELECT id, ts, utid, substr(buf, 1, 1) = 'B' AS begins,
      rtrim(substr(buf, 3 + instr(substr(buf, 3), '|')), char(10)) AS name
    FROM (SELECT id, ts, machine_id << 32 | tid AS utid, extract_arg(id, 'buf') AS buf
      FROM events WHERE name = 'print')
    WHERE buf LIKE 'B|%|%' OR buf = 'E' OR buf LIKE 'E|%' OR buf = 'E' || char(10)))
WINDOW w AS (PARTITION BY utid ORDER BY ts, id);

-- The parent is the last B one level below, which has a row at this level, too
CREATE VIEW _thread_slice AS
SELECT id, ts, iif(closed, end_ts - ts, -1) AS dur, utid, level, name, parent
FROM (SELECT id, ts, utid, level, name, kind, lead(ts) OVER w AS end_ts, lead(kind) OVER w = 0 AS closed,
    CAST(substr(max(iif(kind = 2, printf('%020d', n) || id, NULL)) OVER w, 21) AS INTEGER) AS parent
  FROM (SELECT id, ts, utid, level, name, begins AS kind, n FROM _mark
    UNION ALL SELECT id, ts, utid, level + 1, name, 2, n FROM _mark WHERE begins)
  WINDOW w AS (PARTITION BY utid, level ORDER BY n))
WHERE kind = 1;

-- The hypervisor's visits, vCPUs' states, time stolen from guests' tasks, and slices of threads
CREATE VIEW slice(id, ts, dur, track_id, category, name, depth, parent_id, arg_set_id, thread_ts, thread_dur,
  thread_instruction_count, thread_instruction_delta, cat, slice_id, cpu, machine) AS
SELECT id, ts, dur, track_id, category, name, depth, NULL, arg_set_id, NULL, NULL, NULL, NULL, category, id, cpu,
  machine FROM slices
UNION ALL SELECT 3 << 50 | v.rowid & 0xffffffffffff, v.ts, v.dur, 1 << 44 | v.machine_id << 32 | v.tid, 'vcpu',
  v.state || iif(v.state IN ('hypervisor', 'firmware', 'host', 'not recorded'), ifnull(' ' || v.reason, '') ||
    iif(v.reason = 'TRAP', ifnull(' ' || v.esr_class, ''), ''), ''),
  0, NULL, NULL, NULL, NULL, NULL, NULL, 'vcpu', 3 << 50 | v.rowid & 0xffffffffffff, v.cpu, v.machine
  FROM vcpu_states AS v WHERE v.state <> 'lost'
UNION ALL SELECT 4 << 50 | v.rowid & 0xffffffffffff, v.ts, v.dur, 2 << 44 | v.machine_id << 32 | v.cpu, 'stolen',
  ifnull(v.name, 'task ' || v.tid), 0, NULL, NULL, NULL, NULL, NULL, NULL, 'stolen',
  4 << 50 | v.rowid & 0xffffffffffff, v.cpu, v.machine
  FROM thread_states AS v WHERE v.state = 'stolen'
UNION ALL SELECT s.id, s.ts, s.dur, 3 << 44 | s.utid, NULL, s.name, s.level, s.parent, s.id, NULL, NULL, NULL, NULL,
  NULL, s.id, NULL, m.machine
  FROM _thread_slice AS s JOIN recordings AS m ON m.machine_id = s.utid >> 32;

CREATE VIEW thread_slice(id, ts, dur, category, name, track_id, thread_name, utid, tid, process_name, upid, pid,
  depth, parent_id, arg_set_id, thread_ts, thread_dur) AS
SELECT s.id, s.ts, s.dur, NULL, s.name, 3 << 44 | s.utid, t.name, s.utid, t.tid, p.name, t.upid, p.pid, s.level,
  s.parent, s.id, NULL, NULL
FROM _thread_slice AS s LEFT JOIN thread AS t ON t.utid = s.utid LEFT JOIN process AS p ON p.upid = t.upid;

CREATE VIEW thread_track(id, name, type, parent_id, source_arg_set_id, machine_id, utid) AS
SELECT DISTINCT 3 << 44 | utid, NULL, 'thread_execution', NULL, NULL, utid >> 32, utid FROM _thread_slice;
CREATE VIEW process_track(id, name, type, parent_id, source_arg_set_id, machine_id, upid) AS
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL WHERE 0;

CREATE VIEW _counter AS
SELECT id, ts, machine_id, extract_arg(id, 'cpu_id') AS cpu, extract_arg(id, 'state') AS value,
  iif(name = 'cpu_idle', 5, 4) AS kind, name AS type FROM events WHERE name IN ('cpu_frequency', 'cpu_idle');
CREATE VIEW counter(id, ts, track_id, value, arg_set_id) AS
SELECT id, ts, kind << 44 | machine_id << 32 | cpu, CAST(value AS REAL), id FROM _counter;
CREATE VIEW cpu_counter_track(id, name, type, parent_id, source_arg_set_id, machine_id, unit, description, cpu) AS
SELECT DISTINCT kind << 44 | machine_id << 32 | cpu, iif(kind = 5, 'cpuidle', 'cpufreq'), type, NULL, NULL, machine_id,
  NULL, NULL, cpu FROM _counter;
CREATE VIEW counter_track(id, name, parent_id, type, dimension_arg_set_id, source_arg_set_id, machine_id, unit,
  description) AS
SELECT id, name, NULL, type, NULL, NULL, machine_id, NULL, NULL FROM cpu_counter_track;

CREATE VIEW track(id, name, type, dimension_arg_set_id, parent_id, source_arg_set_id, machine_id, track_group_id) AS
SELECT DISTINCT s.track_id, 'pkVM Hypervisor CPU ' || s.cpu, 'pkvm_hypervisor', NULL, NULL, NULL, s.machine_id, NULL
  FROM slices AS s
UNION ALL SELECT DISTINCT 1 << 44 | v.machine_id << 32 | v.tid,
  ifnull(v.guest || ' ', '') || ifnull('vCPU ' || v.vcpu, 'vCPU thread ' || v.tid),
  'vcpu', NULL, NULL, NULL, v.machine_id, NULL FROM vcpu_states AS v
UNION ALL SELECT DISTINCT 2 << 44 | v.machine_id << 32 | v.cpu, 'Stolen from tasks CPU ' || v.cpu, 'stolen', NULL, NULL,
  NULL, v.machine_id, NULL FROM thread_states AS v WHERE v.state = 'stolen'
UNION ALL SELECT id, name, type, NULL, parent_id, NULL, machine_id, NULL FROM thread_track
UNION ALL SELECT id, name, type, NULL, parent_id, NULL, machine_id, NULL FROM cpu_counter_track;
