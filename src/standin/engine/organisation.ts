import { unknownThing } from "../http/refusal.ts";

/** What usage belongs to. Admin routes change names and flags; ids never change. */
export interface Workspace {
  readonly id: string;
  name: string;
  readonly createdAt: number;
  /** Epoch ms; nothing is counted from then on, earlier counts stay. */
  deletedAt: number | null;
}

export interface Project {
  readonly id: string;
  name: string;
  readonly workspace: Workspace;
  /** Runs as a deployed agent: its traces are agent runs too (kind=langsmith_deployments). */
  readonly agent: boolean;
  /** Removed from every answer, its past too. */
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

/** Who sends traces: one project, one user or none, one key or none. Each count belongs to one stream. */
export interface Stream {
  readonly index: number;
  readonly project: Project;
  readonly user: User | null;
  readonly key: Key | null;
  readonly tier: TraceTier;
  readonly rhythm: Rhythm;
  /** Traces on an ordinary weekday; 0 for a stream without seeded history. */
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
  /** Seeded as unreadable for the key. */
  readonly unreadable: readonly Workspace[];
}

/** These find a thing by its id (a key by its short key) or refuse with 404. */
export const workspaceOf = ({ workspaces }: Organisation, id: string): Workspace =>
  workspaces.find((one) => one.id === id) ?? missing("workspace", id);
export const projectOf = ({ projects }: Organisation, id: string): Project =>
  projects.find((one) => one.id === id) ?? missing("project", id);
export const userOf = ({ users }: Organisation, id: string): User =>
  users.find((one) => one.id === id) ?? missing("user", id);
export const keyOf = ({ keys }: Organisation, shortKey: string): Key =>
  keys.find((one) => one.shortKey === shortKey) ?? missing("key", shortKey);

function missing(kind: string, id: string): never {
  throw unknownThing(kind, id);
}

export type Sender = Pick<Stream, "project" | "user" | "key">;

export function findStream({ streams }: Organisation, of: Sender): Stream | undefined {
  return streams.find((s) => s.project === of.project && s.user === of.user && s.key === of.key);
}

/** The stream of these three; a new one has no seeded history. */
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
