-- What each team pays for October, as rows for a journal entry. Run it as usage_reader.
-- Without an owner file all of it is (unallocated). Costs are estimates from imported prices, in whole cents only at the end, so that
-- the rows of a currency add up to its total; what rounding leaves goes to the largest row.
WITH month AS (
  SELECT DATE '2026-10-01' AS first, DATE '2026-11-01' AS next
),
team AS (
  SELECT owner, coalesce(cost_center, '(none)') AS cost_center, currency, sum(estimated_cost) AS cost, bool_and(is_final) AS is_final
  FROM reporting.fct_cost_owner_daily, month
  WHERE usage_date >= first AND usage_date < next
  GROUP BY 1, 2, 3
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
