export const GROUPINGS = ["workspace", "project", "user", "api_key"] as const;
/** A dimension that usage is split by. */
export type GroupBy = (typeof GROUPINGS)[number];
