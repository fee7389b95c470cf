import pg from "pg";

/** Loaded into the service by `--import`: counts its statements and its CPU time, and tells whoever started it. */

export interface Spent {
  readonly statements: number;
  readonly cpuMs: number;
}

const { prototype } = pg.Client;
const query = prototype.query as (...given: unknown[]) => unknown;
let count = 0;
Object.assign(prototype, {
  query(this: pg.Client, ...given: unknown[]) {
    count++;
    return query.apply(this, given);
  },
});
process.on("message", () => {
  const { user, system } = process.cpuUsage();
  process.send?.({ statements: count, cpuMs: (user + system) / 1000 } satisfies Spent);
});
// The service ends by itself.
process.channel?.unref();
