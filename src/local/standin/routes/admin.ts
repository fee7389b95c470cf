import { z } from "zod";
import { strideNames } from "../billing/stride.ts";
import { newTemplate, type Templates } from "../engine/control-plane.ts";
import { deploymentMeasures } from "../engine/ledger.ts";
import {
  type Evaluator,
  named,
  type Organisation,
  type Project,
  type Sandbox,
  type Stream,
} from "../engine/organisation.ts";
import { faultOptionsSchema } from "../faults.ts";
import { checked, invalid, type Refusal, unknownThing } from "../http/refusal.ts";
import { type Exchange, json, type Route } from "../http/route.ts";
import { settingsSchema } from "../settings.ts";
import type { World } from "../world.ts";

/** The prefix of the stand-in's own routes, which no path of the platform has. */
const PREFIX = "/__standin";

const instant = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const tier = z.enum(["longlived", "shortlived"]);
const cell = {
  workspace_id: z.string().optional(),
  /** Of a project, or of a deployment where deployment usage is meant. */
  project_id: z.string(),
  user_id: z.string().nullable(),
  api_key_short_key: z.string().nullable(),
  hour: instant,
};
const nothing = z.strictObject({}).default({});
const bodies = {
  reset: z.strictObject({ seed: z.int().optional() }).default({}),
  clock: z.union([
    z.strictObject({ now: instant.nullable() }),
    z.strictObject({ advance_seconds: z.number() }),
  ]),
  arrivals: z.strictObject({ ...cell, traces: z.int().min(1), trace_tier: tier.default("shortlived") }),
  tagging: z.strictObject({ resource_id: z.string(), key: z.string().min(1), value: z.string().min(1) }),
  restatements: z.strictObject({ ...cell, delta: z.int() }),
  discrepancies: z.strictObject({
    ...cell,
    delta: z.int(),
    stride: z.enum(strideNames),
    group_by: z.enum(["workspace", "project", "user", "api_key"]).optional(),
    format: z.enum(["json", "csv"]).optional(),
    trace_tier: tier.nullable().default(null),
    measure: z.enum(["traces", ...deploymentMeasures]).default("traces"),
  }),
};

/** The stand-in's own routes: what makes time pass, usage change, and the platform break or contradict itself. */
export function admin(world: World, templates: () => Templates): Route[] {
  const route = <T>(
    method: Route["method"],
    path: string,
    body: z.ZodType<T>,
    answer: (body: T, params: Exchange["params"]) => unknown,
  ): Route => ({
    method,
    path: `${PREFIX}${path}`,
    needs: "nothing",
    handle: ({ body: given, params }) =>
      json(answer(checked(body, given ?? undefined), params) ?? { ok: true }),
  });
  const cellOf = (of: z.output<z.ZodObject<typeof cell>>, isDeployed = false) => {
    const { ledger, deploymentLedger } = world;
    const { projects, deployments, users, keys } = world.organisation;
    const project = isDeployed
      ? named("deployment", of.project_id, deployments)
      : named("project", of.project_id, projects);
    if (of.workspace_id !== undefined && of.workspace_id !== project.workspace.id) {
      throw problem(["workspace_id"], `project ${project.id} is in workspace ${project.workspace.id}`);
    }
    const start = (isDeployed ? deploymentLedger : ledger).start;
    if (of.hour < start) throw problem(["hour"], "before the data start");
    const user = of.user_id === null ? null : named("user", of.user_id, users);
    const { api_key_short_key: shortKey } = of;
    const key = shortKey === null ? null : keys.find((one) => one.shortKey === shortKey);
    if (key === undefined) throw unknownThing("key", `${shortKey}`);
    return { project, user, key, at: of.hour };
  };

  return [
    route("GET", "/organisation", nothing, () => inspect(world)),
    route("GET", "/requests", nothing, () => world.requests),
    route("GET", "/state", nothing, () => world.inspectParts()),
    route("GET", "/faults", nothing, () => world.faults.inspect()),
    route("POST", "/reset", bodies.reset, ({ seed }) => world.reset(seed)),
    route("POST", "/clock", bodies.clock, (to) => {
      world.setClock("now" in to ? { frozenAt: to.now } : { advance: to.advance_seconds * 1000 });
      return { now: new Date(world.now()).toISOString() };
    }),
    route("PATCH", "/settings", settingsSchema.partial(), (settings) =>
      Object.assign(world.settings, settings),
    ),
    route("POST", "/faults", faultOptionsSchema, (options) => {
      world.faults.set(options);
      return world.faults.inspect();
    }),
    route("DELETE", "/faults", nothing, () => world.faults.clear()),
    route("POST", "/templates", newTemplate, (given) => templates().create(given)),
    route("POST", "/arrivals", bodies.arrivals, (of) =>
      world.ledger.change(cellOf(of), of.traces, of.trace_tier),
    ),
    route("POST", "/taggings", bodies.tagging, ({ resource_id: resourceId, ...tag }) => ({
      tagging_id: world.tags.set({ resourceId, ...tag }),
    })),
    route("DELETE", "/taggings/:id", nothing, (_, { id = "" }) => world.tags.remove(id)),
    route("POST", "/restatements", bodies.restatements, (of) => world.ledger.change(cellOf(of), of.delta)),
    route("POST", "/discrepancies", bodies.discrepancies, (of) => {
      const { stride, group_by: groupBy, format, trace_tier, measure, delta } = of;
      const about = { stride, groupBy, format, tier: trace_tier, measure };
      world.discrepancies.push({ ...about, delta, cell: cellOf(of, measure !== "traces") });
    }),
    route("DELETE", "/discrepancies", nothing, () => {
      world.discrepancies.length = 0;
    }),
  ];
}

function inspect(world: World): object {
  const { seed, organisation, ledger, deploymentLedger, access, settings, tags } = world;
  const { id, name, workspaces, users, keys } = organisation;
  return {
    seed,
    id,
    name,
    settings,
    access: access.inspect(),
    workspaces: workspaces.map((one) => ({ ...one, readable: access.canRead(one) })),
    ...shown(organisation),
    tags: tags.all.map(({ workspace, ...tag }) => ({ ...tag, workspace_id: workspace.id })),
    users,
    keys,
    data_start: new Date(ledger.start).toISOString(),
    deployment_start: new Date(deploymentLedger.start).toISOString(),
    now: new Date(world.now()).toISOString(),
  };
}

function shown(organisation: Organisation): object {
  const { projects, streams, deployments, deploymentStreams, sandboxes, evaluators } = organisation;
  const inWorkspace = ({ workspace, ...rest }: Project | Sandbox) => ({
    ...rest,
    workspace_id: workspace.id,
  });
  const ofEvaluator = ({ workspace, rules, ...rest }: Evaluator) => ({
    ...rest,
    workspace_id: workspace.id,
    rules: rules.map(({ project, ...rule }) => ({ ...rule, project_id: project?.id ?? null })),
  });
  const ofStream = ({ project, user, key }: Stream) => ({
    project_id: project.id,
    user_id: user?.id ?? null,
    api_key_short_key: key?.shortKey ?? null,
  });
  return {
    projects: projects.map(inWorkspace),
    streams: streams.map(ofStream),
    deployments: deployments.map(inWorkspace),
    deployment_streams: deploymentStreams.map(ofStream),
    sandboxes: sandboxes.map(inWorkspace),
    evaluators: evaluators.map(ofEvaluator),
  };
}

function problem(loc: string[], msg: string): Refusal {
  return invalid([{ loc: ["body", ...loc], msg, type: "value_error" }]);
}
