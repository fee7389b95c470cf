-- A probe without figures (running, or ended before the comparison) is one row with null group_by.
CREATE OR REPLACE VIEW reporting_detail.metering_probe AS
SELECT src.slug AS source_id, p.probe_id, f.group_by, p.state, p.workspace_id, p.project_id,
       p.expected_traces::bigint AS expected_traces, f.billed_traces, f.others_added, f.others_removed, f.difference,
       p.started_at, p.sent_at, p.billed_at, p.finished_at,
       (extract(epoch FROM p.billed_at - p.sent_at) * 1000)::bigint AS delay_ms,
       p.code, p.message,
       f.expected_id,
       (SELECT string_agg(x.one ->> 'id' || CASE WHEN (x.one ->> 'traces')::bigint > 0 THEN ' +' ELSE ' ' END
                          || (x.one ->> 'traces'), ', ' ORDER BY x.place)
        FROM jsonb_array_elements(f.rises) WITH ORDINALITY x (one, place)) AS risen_ids,
       p.first_billed_at,
       (extract(epoch FROM p.first_billed_at - p.sent_at) * 1000)::bigint AS first_delay_ms,
       p.late_after_ms::bigint AS late_after_ms
FROM usage.probe p
JOIN usage.source src USING (source_id)
LEFT JOIN usage.probe_figure f USING (probe_id);
COMMENT ON VIEW reporting_detail.metering_probe IS 'Whether test traffic was counted as it was sent. Grain: meter probe x dimension (key: source_id, probe_id, group_by). Shows the known traffic that was sent, and by how much the figure of the dimension rose. A probe without figures is one row with null group_by. Never add up over dimensions.';
