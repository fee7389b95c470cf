import pg from "pg";

/** Loaded into the service by `--import`: counts its statements, and tells whoever started it. */

const { prototype } = pg.Client;
const query = prototype.query as (...given: unknown[]) => unknown;
let count = 0;
Object.assign(prototype, {
  query(this: pg.Client, ...given: unknown[]) {
    count++;
    return query.apply(this, given);
  },
});
process.on("message", () => process.send?.(count));
// The service ends by itself.
process.channel?.unref();
