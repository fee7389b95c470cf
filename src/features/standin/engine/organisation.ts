/** Tests change names and flags. Ids never change. */
export interface Workspace {
  readonly id: string;
  name: string;
  readonly createdAt: number;
  /** Usage ends at this instant. */
  deletedAt: number | null;
}

/** A traced project or a deployment. Deployments have separate ids (documented). */
export interface Project {
  readonly id: string;
  name: string;
  readonly workspace: Workspace;
  dropped: boolean;
}

export interface User {
  readonly id: string;
  email: string | null;
}

export interface Key {
  readonly id: string;
  readonly shortKey: string;
  /** Lists of keys show this text, usage does not. */
  description: string | null;
}

/**
 * Some seeded traces are long-lived when received, some after a later rule (documented). Shares, rules and times are our own.
 */
export interface Retention {
  /** Share of traces that are long-lived when received, 0 to 1. */
  readonly received: number;
  readonly upgraded: number;
  /** First day whose traces the rule upgrades, in days since 1970-01-01. */
  readonly ruleFrom: number;
  /** Number of nights from the day after the trace until the rule runs. */
  readonly nightsLater: number;
}

export const SHORT_LIVED: Retention = { received: 0, upgraded: 0, ruleFrom: 0, nightsLater: 0 };

export type Rhythm = "office" | "evening" | "nightly" | "steady";

/** A sender of traces or a deployment. Each count belongs to one. */
export interface Stream {
  readonly index: number;
  readonly project: Project;
  readonly user: User | null;
  readonly key: Key | null;
  readonly retention: Retention;
  readonly rhythm: Rhythm;
  /** Traces on an ordinary weekday. 0: there is no seeded history. */
  readonly weight: number;
  /** Days since 1970-01-01, end exclusive. */
  readonly begins: number;
  readonly ends: number;
  /** Number of replicas of an idle deployment. */
  readonly replicas: number;
}

export const sandboxTypes = ["SANDBOX", "SNAPSHOT"] as const;

/** docs/platform.md, Sandbox costs. Costs have only the id. */
export interface Sandbox {
  readonly id: string;
  name: string;
  readonly type: (typeof sandboxTypes)[number];
  readonly workspace: Workspace;
  /** Starts of the first hour with seeded usage and of the first hour after it. */
  readonly begins: number;
  readonly ends: number;
}

interface Dataset {
  readonly id: string;
  readonly name: string;
}

/** A rule for a project or a dataset. The other one is null. */
export interface EvaluatorRule {
  readonly id: string;
  readonly name: string;
  readonly project: Project | null;
  readonly dataset: Dataset | null;
  /** Limit in USD a week. Null: no limit. */
  limitUsd: number | null;
}

/** An evaluator uses a model or code (docs/platform.md, Evaluator spend). */
export interface Evaluator {
  readonly id: string;
  readonly name: string;
  readonly type: "llm" | "code";
  readonly workspace: Workspace;
  readonly rules: readonly EvaluatorRule[];
}

export interface Organisation {
  readonly id: string;
  readonly name: string;
  readonly workspaces: Workspace[];
  readonly projects: Project[];
  readonly users: User[];
  readonly keys: Key[];
  readonly streams: Stream[];
  readonly deployments: Project[];
  readonly deploymentStreams: Stream[];
  readonly sandboxes: Sandbox[];
  readonly evaluators: Evaluator[];
  readonly unreadable: readonly Workspace[];
}

export function named<T extends { readonly id: string }>(kind: string, id: string, all: readonly T[]): T {
  const found = all.find((one) => one.id === id);
  if (found === undefined) throw new RangeError(`stand-in: no ${kind} ${JSON.stringify(id)}`);
  return found;
}

export type Sender = Pick<Stream, "project" | "user" | "key">;

export function findStream(streams: readonly Stream[], of: Sender): Stream | undefined {
  return streams.find((s) => s.project === of.project && s.user === of.user && s.key === of.key);
}

export function openStream(streams: Stream[], { project, user, key }: Sender): Stream {
  const known = findStream(streams, { project, user, key });
  if (known !== undefined) return known;
  const opened: Stream = {
    project,
    user,
    key,
    index: streams.length,
    retention: SHORT_LIVED,
    rhythm: "steady",
    weight: 0,
    begins: 0,
    ends: Number.POSITIVE_INFINITY,
    replicas: 0,
  };
  streams.push(opened);
  return opened;
}
