import { startLocalPostgres } from "../../src/features/servers/postgres.ts";
import { startLocalRedis } from "../../src/features/servers/redis.ts";

/** `node services-owner.ts` owns a Postgres and a Redis until it is killed. It prints one line of JSON: their URLs, or the error. */
const input = { say: (line: string) => void process.stderr.write(`${line}\n`), env: process.env };

try {
  const postgres = await startLocalPostgres(input);
  const redis = await startLocalRedis(input);
  process.stdout.write(`${JSON.stringify({ postgres: postgres.url, redis: redis.url })}\n`);
  setInterval(() => {}, 1_000);
} catch (error) {
  process.stdout.write(
    `${JSON.stringify({ code: (error as { code?: string }).code, message: String(error) })}\n`,
  );
}
