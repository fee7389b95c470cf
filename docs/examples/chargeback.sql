-- Lists what each team pays for the invoiced usage of October, as rows for a journal entry. Run it as usage_reader. `is_final` is true if
-- every day is loaded and only a restatement can change it. Without an owner file everything is (unallocated). Costs are estimates from
-- imported prices. They are rounded to cents at the end, and the largest row takes the remainder, so that the rows of a currency add up.
WITH month AS (
  SELECT DATE '2026-10-01' AS first, DATE '2026-11-01' AS next
),
team AS (
  SELECT owner, coalesce(cost_center, '(none)') AS cost_center, currency, sum(estimated_cost) AS cost,
         bool_and(is_final) AND (SELECT bool_and(d.is_final) FROM reporting.dim_date d WHERE d.usage_date >= first AND d.usage_date < next) AS is_final
  FROM reporting.fct_cost_owner_daily, month
  WHERE usage_date >= first AND usage_date < next AND is_invoiced
  GROUP BY 1, 2, 3, first, next
),
rounded AS (
  SELECT *, round(cost, 2) AS cents, round(sum(cost) OVER all_teams, 2) AS total,
         row_number() OVER (PARTITION BY currency ORDER BY cost DESC, owner, cost_center) AS place
  FROM team
  WINDOW all_teams AS (PARTITION BY currency)
)
SELECT owner, cost_center, currency,
       cents + CASE WHEN place = 1 THEN total - sum(cents) OVER (PARTITION BY currency) ELSE 0 END AS amount,
       round(100 * cost / nullif(sum(cost) OVER (PARTITION BY currency), 0), 1) AS percent, is_final
FROM rounded
ORDER BY currency, amount DESC, owner, cost_center;
