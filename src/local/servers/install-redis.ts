import { UnreachableError } from "../../errors.ts";
import { aptInstall, mayAptInstall } from "./apt-install.ts";
import type { StartInput } from "./service.ts";

/**
 * Installs `redis-server` with apt-get, as root on Debian or Ubuntu; false elsewhere. Throws `UnreachableError`
 * (`redis_install_failed`) with the output of apt-get.
 */
export async function installRedis(input: StartInput): Promise<boolean> {
  if (!(await mayAptInstall(input.env))) return false;
  input.say("No Redis on PATH: installing redis-server with apt-get (its system service stays off).");
  try {
    await aptInstall(["redis-server"], input.env);
    return true;
  } catch (cause) {
    const said = cause instanceof Error ? cause.message : String(cause);
    throw new UnreachableError({
      code: "redis_install_failed",
      message: `No Redis to use: REDIS_URL is not set, none is on PATH, and apt-get could not install redis-server: ${said}`,
      next: "Set REDIS_URL=redis://host:6379, or install redis-server or valkey-server yourself.",
      cause,
    });
  }
}
