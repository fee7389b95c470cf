/** Lifts a limit that the server may set for whole transactions. Postgres 15 and 16 have no such setting, and refuse its name. */
export const WITHOUT_TRANSACTION_TIMEOUT =
  "SELECT set_config('transaction_timeout', '0', true) WHERE current_setting('transaction_timeout', true) IS NOT NULL";
