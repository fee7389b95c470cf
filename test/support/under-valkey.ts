import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { onPath } from "../../src/features/servers/install.ts";

/**
 * `npm run test:valkey -- [vitest arguments]`: runs the tests of the queue on Valkey in place of Redis, cluster and Sentinel
 * included. The server is the one of `VALKEY_SERVER`, else `valkey-server` on PATH. Tests start it by the name `redis-server`.
 */

const server = process.env.VALKEY_SERVER || onPath(["valkey-server"], process.env);
if (server === undefined) {
  process.stderr.write("No valkey-server on PATH. Install one, or set VALKEY_SERVER to its path.\n");
  process.exit(2);
}
const version = execFileSync(server, ["--version"], { encoding: "utf8" }).trim();
if (!/valkey/i.test(version)) {
  process.stderr.write(`${server} is no Valkey: ${version}\n`);
  process.exit(2);
}
process.stderr.write(`${version}\n`);

const folder = mkdtempSync(join(tmpdir(), "usage-etl-valkey-"));
try {
  symlinkSync(server, join(folder, "redis-server"));
  const { REDIS_URL: _named, ...env } = process.env;
  const given = process.argv.slice(2);
  const { status } = spawnSync("vitest", ["run", ...(given.length > 0 ? given : ["--project", "service"])], {
    stdio: "inherit",
    env: { ...env, PATH: `${folder}${delimiter}${env.PATH}` },
  });
  process.exitCode = status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
