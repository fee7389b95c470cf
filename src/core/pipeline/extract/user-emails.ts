import { createHash } from "node:crypto";
import type { EmailPolicy } from "../../base/config.ts";
import type { GroupBy, UsageRecord } from "../../domain/usage/record.ts";

/** Most digests kept per response. An address is in every bucket, and its digest takes longer than the rest of a record. */
const MOST_KEPT = 50_000;

/** Applies `USAGE_USER_EMAIL` before anything is stored, so that no address has to be removed later. */
export function withEmailPolicy(groupBy: GroupBy, policy: EmailPolicy) {
  const digests = new Map<string, string>();
  const keptDigestOf = (email: string) => {
    const kept = digests.get(email);
    if (kept !== undefined) return kept;
    const digest = digestOf(email);
    if (digests.size < MOST_KEPT) digests.set(email, digest);
    return digest;
  };
  return (records: UsageRecord[]): UsageRecord[] => {
    if (groupBy !== "user" || policy === "keep") return records;
    return records.map((record) => ({
      ...record,
      dimensionName:
        policy === "drop" || record.dimensionName === null ? null : keptDigestOf(record.dimensionName),
    }));
  };
}

function digestOf(email: string): string {
  return `sha256:${createHash("sha256").update(email.toLowerCase()).digest("hex").slice(0, 16)}`;
}
