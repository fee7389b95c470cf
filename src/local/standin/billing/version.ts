import type { Settings } from "../settings.ts";

/** From 0.16.0 on a self-hosted server tracks no long-lived usage (docs/platform.md, Contracts). */
const WITHOUT_LONGLIVED = [0, 16, 0];

export function keepsLonglived({ hosting, serverVersion }: Settings): boolean {
  if (hosting === "cloud") return true;
  const version = /^v?(\d+)\.(\d+)\.(\d+)/.exec(serverVersion)?.slice(1).map(Number) ?? [];
  for (const [i, least] of WITHOUT_LONGLIVED.entries()) {
    const part = version[i] ?? 0;
    if (part !== least) return part < least;
  }
  return false;
}
