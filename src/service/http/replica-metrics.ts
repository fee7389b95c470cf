import { Gauge, type Registry } from "prom-client";

/** Registers what is known of the replica, and returns what sets it. */
export function registerReplica(
  registry: Registry,
): (seen: { lagMs: number | undefined; isUsed: boolean }) => void {
  const registers = [registry];
  const lag = new Gauge({
    name: "usage_etl_replica_lag_seconds",
    help: "How far the replica is behind the primary, 2 s too much at most. Missing where it is not known.",
    registers,
  });
  const used = new Gauge({
    name: "usage_etl_replica_used",
    help: "1 if what Postgres knows was read from the replica at this scrape, 0 if from the primary.",
    registers,
  });
  return ({ lagMs, isUsed }) => {
    lag.remove();
    if (lagMs !== undefined) lag.set(lagMs / 1000);
    used.set(isUsed ? 1 : 0);
  };
}
