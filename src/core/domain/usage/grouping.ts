export const GROUPINGS = ["workspace", "project", "user", "api_key"] as const;
export type GroupBy = (typeof GROUPINGS)[number];
