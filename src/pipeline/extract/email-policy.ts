import { createHash } from "node:crypto";
import type { EmailPolicy } from "../../config/config.ts";
import type { GroupBy, UsageRecord } from "../../domain/usage/record.ts";

/** Applies `USAGE_USER_EMAIL` before anything is stored, so that no address has to be removed afterwards. */
export function withEmailPolicy(groupBy: GroupBy, policy: EmailPolicy) {
  return (records: UsageRecord[]): UsageRecord[] => {
    if (groupBy !== "user" || policy === "keep") return records;
    return records.map((record) => ({
      ...record,
      dimensionName:
        policy === "drop" || record.dimensionName === null ? null : digestOf(record.dimensionName),
    }));
  };
}

function digestOf(email: string): string {
  return `sha256:${createHash("sha256").update(email.toLowerCase()).digest("hex").slice(0, 16)}`;
}
