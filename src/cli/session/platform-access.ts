import { type Command, InvalidArgumentError } from "commander";
import { Duration } from "luxon";
import type { PlatformAccess } from "../../config/config.ts";
import { UsageError } from "../../errors.ts";
import type { ControlPlaneClient } from "../../platform/agents/control-plane.ts";
import { controlPlaneClientOf, type DeploymentClients, deploymentClientsOf } from "../../platform/clients.ts";
import type { Session } from "./session.ts";

/** Which source's hosts and key a platform command uses; needed where several are configured. */
export interface SourceOption {
  readonly source?: string;
}

export function withSource(command: Command): Command {
  return command.option(
    "--source <slug>",
    "the source whose hosts and key are used, where there are several",
  );
}

/** The control plane, closed with the session. */
export function openControlPlane(session: Session, options: SourceOption): ControlPlaneClient {
  const client = controlPlaneClientOf(accessOf(session, options));
  session.onClose(() => client.close());
  return client;
}

/** The deployment, closed with the session. */
export function openDeployment(session: Session, options: SourceOption): DeploymentClients {
  const clients = deploymentClientsOf(accessOf(session, options));
  session.onClose(() => clients.close());
  return clients;
}

function accessOf({ config }: Session, { source: slug }: SourceOption): PlatformAccess {
  const { sources, platform } = config;
  const found = slug === undefined ? sources : sources.filter((one) => one.slug === slug);
  if (found.length === 1) return found[0] as PlatformAccess;
  if (slug === undefined && sources.length === 0) return platform;
  const known = sources.map((one) => one.slug).join(", ");
  throw new UsageError({
    code: "source_unknown",
    message: slug === undefined ? "Several sources are configured." : `There is no source ${slug}.`,
    next: `Name one with --source: ${known || "none is configured"}.`,
  });
}

/** Milliseconds of an ISO 8601 duration, for `--within`. */
export function parseDuration(text: string): number {
  const value = Duration.fromISO(text);
  if (value.isValid && value.toMillis() > 0) return value.toMillis();
  throw new InvalidArgumentError("It is not an ISO 8601 duration such as PT30M.");
}
