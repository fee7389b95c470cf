/** What follows from rows that a test writes by hand. The product's modules see to it themselves. */

/** After proof or differences. */
export const KEEP_PROOF = "SELECT usage.keep_proof(array_agg(scope_id)) FROM usage.scope";

/** After prices, closes, or what decides which days are expected: in the same transaction. */
export const ALL_DUE = "SELECT usage.charges_due(NULL, NULL)";
