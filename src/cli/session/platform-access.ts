import { type Command, InvalidArgumentError, Option } from "commander";
import type { PlatformAccess } from "../../config/config.ts";
import { UsageError } from "../../errors.ts";
import { Duration } from "../../luxon.ts";
import type { ControlPlaneClient } from "../../platform/agents/control-plane.ts";
import { controlPlaneClientOf, type DeploymentClients, deploymentClientsOf } from "../../platform/clients.ts";
import type { Session } from "./session.ts";

export interface SourceOption {
  readonly source?: string;
}

export interface AssistantOption extends SourceOption {
  readonly assistant?: string;
}

export interface WithinOption {
  /** Milliseconds. */
  readonly within: number;
}

export function withSource(command: Command): Command {
  return command.option(
    "--source <slug>",
    "use the hosts and the key of this source; needed if there are several",
  );
}

export function withAssistant(command: Command): Command {
  return withSource(command).option(
    "--assistant <name or id>",
    "the assistant; default USAGE_PROBE_ASSISTANT",
  );
}

export function withWithin(command: Command, defaultMs: number): Command {
  const shown = Duration.fromMillis(defaultMs).rescale().toISO();
  return command.addOption(
    new Option("--within <duration>", "how long to wait").argParser(parseDuration).default(defaultMs, shown),
  );
}

/** The client is closed with the session. */
export function openControlPlane(session: Session, options: SourceOption): ControlPlaneClient {
  const client = controlPlaneClientOf(accessOf(session, options));
  session.onClose(() => client.close());
  return client;
}

/** The clients are closed with the session. */
export function openDeployment(session: Session, options: SourceOption): DeploymentClients {
  const clients = deploymentClientsOf(accessOf(session, options));
  session.onClose(() => clients.close());
  return clients;
}

export function assistantOf({ config }: Session, { assistant }: AssistantOption): string {
  return assistant ?? config.probeAssistant;
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
    next: `Choose one with --source. Configured: ${known || "none"}.`,
  });
}

/** A timer takes no more. */
const LONGEST_MS = 20 * 86_400_000;

/** Milliseconds of an ISO 8601 duration. */
export function parseDuration(text: string): number {
  const value = Duration.fromISO(text);
  const ms = value.isValid ? value.toMillis() : Number.NaN;
  if (ms > 0 && ms <= LONGEST_MS) return ms;
  throw new InvalidArgumentError(
    ms > LONGEST_MS ? "It is more than 20 days." : "It is not an ISO 8601 duration such as PT30M.",
  );
}
