import type { MeterFault } from "./faults.ts";
import type { Cell } from "./ledger.ts";
import type { Key, Organisation, Project, Sender, Workspace } from "./organisation.ts";
import { dice } from "./random.ts";
import { RunEngine } from "./runs.ts";
import type { World } from "./world.ts";

/** A deployment traces into a project of its own name (documented). */
export const DEPLOYMENT_PROJECT = "agent-server";

export function runsOf(world: World): RunEngine {
  return new RunEngine(
    () => world.now(),
    () => bill(world, world.now(), world.faults.nextOfMeter()),
  );
}

/** Bills runs of an earlier server, so that usage survives a restart. */
export function billEarlier(world: World, { at, runs }: { at: number; runs: number }): void {
  for (let i = 0; i < runs; i++) bill(world, at, null);
}

/** Bills one trace for a run, at the run's start (our guess), and the deployment's own usage. */
function bill(world: World, at: number, fault: MeterFault | null): void {
  const { deployment, ...own } = senderOf(world);
  if (at >= world.ledger.start) billTrace(world, { ...own, at }, fault);
  if (at < world.deploymentLedger.start) return;
  for (const measure of ["agent_runs", "nodes_executed"] as const) {
    world.deploymentLedger.change({ ...own, project: deployment, at }, measure, 1);
  }
}

function billTrace({ ledger, organisation }: World, own: Cell, fault: MeterFault | null): void {
  const { users, keys } = organisation;
  if (fault?.kind === "drop") return;
  const cell = { ...own };
  if (fault?.kind === "user") cell.user = other(users, own.user);
  if (fault?.kind === "key") cell.key = other(keys, own.key);
  if (fault?.kind === "project") cell.project = otherProject(organisation, own.project);
  if (fault?.kind === "late") ledger.addLater(cell, cell.at + fault.seconds * 1000);
  else ledger.change(cell, 1);
  if (fault?.kind === "double") ledger.addLater(cell, cell.at + fault.after_seconds * 1000);
}

function otherProject({ projects }: Organisation, own: Project): Project {
  const known = projects.find((one) => one.workspace === own.workspace && one !== own);
  if (known !== undefined) return known;
  const created = { ...own, id: own.id.replaceAll(/[0-8]/g, "9"), name: "another-agent" };
  projects.push(created);
  return created;
}

function other<T>(all: readonly T[], own: T | null): T | null {
  return all.find((one) => one !== own) ?? null;
}

const senders = new WeakMap<Organisation, ReturnType<typeof newSender>>();

function senderOf(world: World): ReturnType<typeof newSender> {
  const known = senders.get(world.organisation) ?? newSender(world);
  senders.set(world.organisation, known);
  return known;
}

/**
 * Creates the deployment's project and key, without a user (our guess). The workspace is the first readable one, if possible
 * without traffic, so that a probe finds no other traffic. They are created with the first trace, so that an organization
 * without traffic stays as seeded.
 */
function newSender({ organisation, access, seed }: World): Sender & { readonly deployment: Project } {
  const listed = organisation.workspaces.filter((one) => access.canRead(one) && one.deletedAt === null);
  const isIdle = (one: Workspace) => !organisation.streams.some(({ project }) => project.workspace === one);
  const workspace = listed.find(isIdle) ?? listed[0] ?? organisation.workspaces[0];
  if (workspace === undefined) throw new Error("an organisation without a workspace");
  // The ids depend only on the seed.
  const { uuid } = dice(seed + 7919);
  const project: Project = { id: uuid(), name: DEPLOYMENT_PROJECT, workspace, dropped: false };
  const key: Key = { id: uuid(), shortKey: `sk...${access.apiKey.slice(-4)}`, description: null };
  organisation.projects.push(project);
  organisation.keys.push(key);
  const deployment: Project = { ...project, id: uuid() };
  organisation.deployments.push(deployment);
  return { project, user: null, key, deployment };
}
