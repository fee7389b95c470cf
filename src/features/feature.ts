import type { Command } from "commander";
import type { FastifyInstance } from "fastify";
import type { FeatureJob } from "../../jobs/job.ts";
import type { Config, SourceConfig } from "../core/base/config.ts";
import type { Store } from "../core/store/db/database.ts";
import type { Notes } from "../terminal/check.ts";
import type { Session } from "../terminal/session.ts";
import type { Web, WebServices } from "../web/routes.ts";

/** The parts that a feature adds to the program. Each part is loaded at its first use. */
export interface Feature {
  /** Keys are the words typed after `usage-etl`. */
  readonly commands?: Readonly<Record<string, CommandEntry>>;
  readonly pages?: () => Promise<(web: Web) => void>;
  readonly endpoints?: () => Promise<AddEndpoints>;
  readonly jobs?: () => Promise<(config: Config, slug: string) => FeatureJob[]>;
  readonly checks?: () => Promise<FeatureChecks>;
  /** Finds state of sources that the feature keeps outside the database. */
  readonly outside?: () => Promise<Outside>;
}

export interface CommandEntry {
  readonly group: CommandGroup;
  readonly about: string;
  readonly load: () => Promise<CommandDefinition>;
}

export const COMMAND_GROUPS = [
  "Set up",
  "Load",
  "Prove",
  "Read",
  "Prices and owners",
  "Operate",
  "Agents and deployments",
] as const;
type CommandGroup = (typeof COMMAND_GROUPS)[number];

export interface CommandDefinition {
  define(command: Command, features: readonly Feature[]): void;
  readonly examples: readonly (readonly [line: string, does: string])[];
}

export type AddEndpoints = (app: FastifyInstance, services: WebServices) => Promise<void>;

export interface FeatureChecks {
  installation?(config: Config, store: Store | undefined, notes: Notes): Promise<void>;
  source?(config: Config, of: CheckedSource, notes: Notes): Promise<void>;
}

type Outside = (session: Session, slug: string) => Promise<KeptOutside>;

export interface KeptOutside {
  readonly count: number;
  readonly what: string;
  remove(): Promise<void>;
}

export interface CheckedSource {
  readonly source: SourceConfig;
  readonly store: Store | undefined;
  /** Undefined: the source was never opened, or the database cannot be read. */
  readonly sourceId: number | undefined;
  readonly signal: AbortSignal;
}
