export const KEEP_PROOF = "SELECT usage.keep_proof(array_agg(scope_id)) FROM usage.scope";

export const ALL_DUE = "SELECT usage.charges_due(NULL, NULL)";
