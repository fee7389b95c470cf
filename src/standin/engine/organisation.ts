import { unknownThing } from "../http/refusal.ts";

/**
 * The people and things that usage belongs to. Names and the flags are mutable: an admin route renames, drops and
 * deletes; ids never change.
 */
export interface Workspace {
  readonly id: string;
  name: string;
  readonly createdAt: number;
  /** Epoch ms; nothing is counted in it from then on, what was counted before stays. */
  deletedAt: number | null;
}

export interface Project {
  readonly id: string;
  name: string;
  readonly workspace: Workspace;
  /** Runs as a deployed agent: its traces are agent runs too (kind=langsmith_deployments). */
  readonly agent: boolean;
  /** Gone from every answer, its past too. */
  dropped: boolean;
}

export interface User {
  readonly id: string;
  email: string | null;
}

export interface Key {
  readonly id: string;
  readonly shortKey: string;
}

type TraceTier = "longlived" | "shortlived";
export type Rhythm = "office" | "evening" | "nightly" | "steady";

/** Who sends traces where: one project, one user or none, one key or none. Each count belongs to exactly one stream. */
export interface Stream {
  readonly index: number;
  readonly project: Project;
  readonly user: User | null;
  readonly key: Key | null;
  readonly tier: TraceTier;
  readonly rhythm: Rhythm;
  /** Traces on an ordinary weekday; 0 for a stream that only carries what was added by hand. */
  readonly weight: number;
  /** Days since 1970-01-01: first day with usage, and first day without again. */
  readonly begins: number;
  readonly ends: number;
}

export interface Organisation {
  readonly id: string;
  readonly name: string;
  readonly workspaces: Workspace[];
  readonly projects: Project[];
  readonly users: User[];
  readonly keys: Key[];
  readonly streams: Stream[];
  /** Seeded as outside the key's reach. */
  readonly unreadable: readonly Workspace[];
}

/** Finds a thing by its id (a key by its short key) or refuses, 404. */
export function workspaceOf(organisation: Organisation, id: string): Workspace {
  return found(
    "workspace",
    id,
    organisation.workspaces.find((one) => one.id === id),
  );
}

export function projectOf(organisation: Organisation, id: string): Project {
  return found(
    "project",
    id,
    organisation.projects.find((one) => one.id === id),
  );
}

export function userOf(organisation: Organisation, id: string): User {
  return found(
    "user",
    id,
    organisation.users.find((one) => one.id === id),
  );
}

export function keyOf(organisation: Organisation, shortKey: string): Key {
  return found(
    "key",
    shortKey,
    organisation.keys.find((one) => one.shortKey === shortKey),
  );
}

export type Sender = Pick<Stream, "project" | "user" | "key">;

export function findStream({ streams }: Organisation, of: Sender): Stream | undefined {
  return streams.find((s) => s.project === of.project && s.user === of.user && s.key === of.key);
}

/** The stream of these three; one is opened, without a history of its own, where there was none. */
export function openStream(organisation: Organisation, { project, user, key }: Sender): Stream {
  const known = findStream(organisation, { project, user, key });
  if (known !== undefined) return known;
  const opened: Stream = {
    project,
    user,
    key,
    index: organisation.streams.length,
    tier: "shortlived",
    rhythm: "steady",
    weight: 0,
    begins: 0,
    ends: Number.POSITIVE_INFINITY,
  };
  organisation.streams.push(opened);
  return opened;
}

function found<T>(kind: string, id: string, thing: T | undefined): T {
  if (thing === undefined) throw unknownThing(kind, id);
  return thing;
}
