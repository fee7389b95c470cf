import { named, type Organisation, type Workspace } from "./organisation.ts";
import { type Dice, dice } from "./random.ts";

export const TAGGINGS = "/api/v1/workspaces/current/taggings";

/** Seen in client code. The stand-in has only the first four. */
export const taggedTypes = [
  "projects",
  "deployments",
  "sandboxes",
  "datasets",
  "dashboards",
  "experiments",
  "prompts",
  "queues",
] as const;

interface Resource {
  readonly type: (typeof taggedTypes)[number];
  readonly id: string;
  readonly name: string;
  readonly workspace: Workspace;
}

interface Tag {
  readonly id: string;
  readonly value: string;
  readonly key: string;
  readonly keyId: string;
  readonly workspace: Workspace;
  taggings: { readonly id: string; readonly resourceId: string }[];
}

interface TaggedResource extends Resource {
  readonly taggingId: string;
}

interface TagOf {
  readonly resourceId: string;
  readonly key: string;
  readonly value: string;
}

/** The keys are documented. Their values are our own. */
const SEEDED = {
  Application: ["checkout", "search", "support"],
  Environment: ["production", "staging"],
};
const SHARES = { projects: 0.8, deployments: 0.5, sandboxes: 0.5, datasets: 0.5 };

/** Tags of each workspace. Separate dice keep the rest the same without tags. */
export class Tags {
  readonly #all: Tag[] = [];
  readonly #organisation: Organisation;
  readonly #roll: Dice;

  constructor({ seed, organisation }: { seed: number; organisation: Organisation }) {
    this.#organisation = organisation;
    this.#roll = dice(seed + 67_867_967);
    for (const resource of resourcesOf(organisation)) {
      const share = SHARES[resource.type as keyof typeof SHARES];
      if (this.#roll.next() >= share) continue;
      for (const [key, values] of Object.entries(SEEDED)) this.#set(resource, key, this.#roll.pick(values));
    }
  }

  of(workspaceId: string): (Tag & { readonly resources: TaggedResource[] })[] {
    const known = new Map(resourcesOf(this.#organisation).map((one) => [one.id, one]));
    return this.#all
      .filter(({ workspace }) => workspace.id === workspaceId)
      .map((tag) => {
        const resources = tag.taggings.flatMap(({ id, resourceId }): TaggedResource[] => {
          const resource = known.get(resourceId);
          return resource === undefined ? [] : [{ ...resource, taggingId: id }];
        });
        return { ...tag, resources };
      });
  }

  set({ resourceId, key, value }: TagOf): void {
    this.#set(named("resource", resourceId, resourcesOf(this.#organisation)), key, value);
  }

  remove(taggingId: string): void {
    for (const tag of this.#all) tag.taggings = tag.taggings.filter(({ id }) => id !== taggingId);
  }

  #set({ id: resourceId, workspace }: Resource, key: string, value: string): void {
    const { taggings } = this.#tagOf(workspace, key, value);
    if (taggings.some((one) => one.resourceId === resourceId)) return;
    taggings.push({ id: this.#roll.uuid(), resourceId });
  }

  #tagOf(workspace: Workspace, key: string, value: string): Tag {
    const ofKey = this.#all.filter((one) => one.workspace === workspace && one.key === key);
    const known = ofKey.find((one) => one.value === value);
    if (known !== undefined) return known;
    const keyId = ofKey[0]?.keyId ?? this.#roll.uuid();
    const tag: Tag = { id: this.#roll.uuid(), value, key, keyId, workspace, taggings: [] };
    this.#all.push(tag);
    return tag;
  }
}

/** A sandbox has no name, so the start of its id is used (our own). */
function resourcesOf({ projects, deployments, sandboxes, evaluators }: Organisation): Resource[] {
  const isThere = ({ dropped }: { readonly dropped: boolean }) => !dropped;
  const datasets = evaluators.flatMap(({ workspace, rules }) =>
    rules.flatMap(({ dataset }) => (dataset === null ? [] : [{ ...dataset, workspace }])),
  );
  const of =
    (type: Resource["type"]) =>
    ({ id, name, workspace }: Omit<Resource, "type">): Resource => ({ type, id, name, workspace });
  return [
    ...projects.filter(isThere).map(of("projects")),
    ...deployments.filter(isThere).map(of("deployments")),
    ...sandboxes
      .filter(({ type }) => type === "SANDBOX")
      .map((one) => of("sandboxes")({ ...one, name: `sandbox-${one.id.slice(0, 8)}` })),
    ...datasets.map(of("datasets")),
  ];
}
