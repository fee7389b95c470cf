import type { World } from "../world.ts";
import type { Key, Project, User } from "./organisation.ts";
import { dice } from "./random.ts";
import { RunEngine } from "./runs.ts";

/** Documented elsewhere: a deployment traces into a project of its own name. */
const PROJECT_NAME = "agent-server";

/** The run engine of one world, on its meter. */
export function runsOf(world: World): RunEngine {
  let sender: { project: Project; user: User | null; key: Key } | undefined;
  return new RunEngine({
    now: () => world.now(),
    // One trace a run, recorded when it starts (our guess: the specification only says that traces are counted).
    meter: () => {
      sender ??= newSender(world);
      const at = world.now();
      if (at >= world.ledger.dataStart) world.ledger.change({ ...sender, at }, 1);
    },
  });
}

/**
 * Whom the traffic is billed to: the first workspace that a client finds listed, a project and a key of its own, and
 * nobody in person (our guess). They are entered with the first trace, so that an organisation without traffic is the
 * seeded one.
 */
function newSender({ organisation, access, seed }: World): { project: Project; user: null; key: Key } {
  const listed = organisation.workspaces.filter((one) => access.canRead(one) && one.deletedAt === null);
  const workspace = listed[0] ?? organisation.workspaces[0];
  if (workspace === undefined) throw new Error("an organisation without a workspace");
  // Ids of the seed: the same traffic on another day has the same ids.
  const { uuid } = dice(seed + 7919);
  const project: Project = { id: uuid(), name: PROJECT_NAME, workspace, agent: true, dropped: false };
  const key: Key = { id: uuid(), shortKey: `sk...${access.apiKey.slice(-4)}` };
  organisation.projects.push(project);
  organisation.keys.push(key);
  return { project, user: null, key };
}
