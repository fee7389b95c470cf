import type { World } from "../world.ts";
import type { Key, Project, User } from "./organisation.ts";
import { dice } from "./random.ts";
import { RunEngine } from "./runs.ts";

/** A deployment traces into a project of its own name (documented). */
const PROJECT_NAME = "agent-server";

/** The run engine of one world: each run is billed in its ledger. */
export function runsOf(world: World): RunEngine {
  let sender: { project: Project; user: User | null; key: Key } | undefined;
  // One trace a run, recorded when it starts (our guess).
  const meter = () => {
    sender ??= newSender(world);
    const at = world.now();
    if (at >= world.ledger.dataStart) world.ledger.change({ ...sender, at }, 1);
  };
  return new RunEngine(() => world.now(), meter);
}

/**
 * Who pays for the traffic: the first workspace of the listing, a project and a key of its own, and no user (our guess).
 * Entered with the first trace, so that an organisation without traffic stays as seeded.
 */
function newSender({ organisation, access, seed }: World): { project: Project; user: null; key: Key } {
  const listed = organisation.workspaces.filter((one) => access.canRead(one) && one.deletedAt === null);
  const workspace = listed[0] ?? organisation.workspaces[0];
  if (workspace === undefined) throw new Error("an organisation without a workspace");
  // Ids depend on the seed alone, so the same traffic has the same ids on another day.
  const { uuid } = dice(seed + 7919);
  const project: Project = { id: uuid(), name: PROJECT_NAME, workspace, agent: true, dropped: false };
  const key: Key = { id: uuid(), shortKey: `sk...${access.apiKey.slice(-4)}` };
  organisation.projects.push(project);
  organisation.keys.push(key);
  return { project, user: null, key };
}
