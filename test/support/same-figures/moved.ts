export const MOVED: {
  readonly views: readonly RegExp[];
  readonly columns: readonly string[];
  readonly lines: readonly RegExp[];
  /** Commands and pages that are gone, or that may change. */
  readonly files: readonly RegExp[];
  /** Commands and pages that show less. What they still show must be the same, so a changed figure is still found. */
  readonly shorter: readonly RegExp[];
} = {
  views: [
    /_masked$/,
    /^fct_(deployment_usage|sandbox_usage|evaluator_spend)_/,
    /^dim_(deployment|sandbox|run_rule)$/,
    /^fct_usage_(workspace|project|user|api_key)_monthly$/,
    /^fct_cost_(project|user|api_key|deployment|sandbox)_daily$/,
    /^dim_\w+_tag$/,
    /^bridge_\w+_workspace$/,
    /^fct_usage_\w+_by_tier_/,
    /^fct_usage_(project|user|api_key)_hourly$/,
    /^usage_\w+_daily_as_of$/,
    /^fct_month_close/,
    /^usage_period_close$/,
  ],
  columns: ["fct_usage_user_daily.user_email", "usage_record.dimension_name"],
  lines: [/^\.\d+\.period(Start|End) = \d{4}-\d{2}-01$/],
  files: [/accept=yes/],
  shorter: [/^dim_name\.view$/],
};
