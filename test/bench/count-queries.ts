import pg from "pg";

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
process.channel?.unref();
