-- SPDX-License-Identifier: LGPL-2.1-or-later
-- SPAN_JOIN of a and b, of partitions _p: cuts time where a span of either table begins or ends, and joins each segment
-- with the spans that cover it: those with the greatest _i that began before. A row whose dur is 0 or less is a point, a
-- row of its own.
edge(p, t, a, b, pa, pb) AS (
	SELECT _p, ts, iif(dur > 0, _i, NULL), NULL, iif(dur > 0, NULL, _i), NULL FROM a
	UNION ALL SELECT _p, ts + dur, NULL, NULL, NULL, NULL FROM a WHERE dur > 0
	UNION ALL SELECT _p, ts, NULL, iif(dur > 0, _i, NULL), NULL, iif(dur > 0, NULL, _i) FROM b
	UNION ALL SELECT _p, ts + dur, NULL, NULL, NULL, NULL FROM b WHERE dur > 0
),
cut AS (
	SELECT p, t, max(a) AS a, max(b) AS b, max(pa) AS pa, max(pb) AS pb FROM edge GROUP BY p, t
),
seg AS MATERIALIZED (
	SELECT p, t, lead(t) OVER w - t AS d, max(a) OVER w AS a, max(b) OVER w AS b, pa, pb
	FROM cut WINDOW w AS (PARTITION BY p ORDER BY t)
),
both AS (
	SELECT p, t, NULL AS d, coalesce(pa, a) AS a, coalesce(pb, b) AS b FROM seg WHERE pa IS NOT NULL OR pb IS NOT NULL
	UNION ALL SELECT p, t, d, a, b FROM seg WHERE d IS NOT NULL
)
SELECT both.t AS ts, coalesce(both.d, CASE WHEN a.dur <= 0 THEN a.dur ELSE b.dur END) AS dur
