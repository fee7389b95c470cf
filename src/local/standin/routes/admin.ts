import { z } from "zod";
import { strideNames } from "../billing/stride.ts";
import { METRICS, type Metric } from "../engine/bill.ts";
import { newTemplate, type Templates } from "../engine/control-plane.ts";
import { evaluatorMeasures } from "../engine/evaluators.ts";
import { deploymentMeasures } from "../engine/ledger.ts";
import {
  deploymentOf,
  type Evaluator,
  evaluatorRuleOf,
  keyOf,
  type Organisation,
  type Project,
  projectOf,
  type Sandbox,
  type Stream,
  sandboxOf,
  userOf,
  workspaceOf,
} from "../engine/organisation.ts";
import { sandboxMeasures } from "../engine/sandboxes.ts";
import { faultOptionsSchema } from "../faults.ts";
import { checked, invalid, type Refusal } from "../http/refusal.ts";
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
  access: z.strictObject({
    api_key: z.string().min(1).optional(),
    revoked: z.boolean().optional(),
    organization_read: z.boolean().optional(),
    organization_scoped: z.boolean().optional(),
    organization_manage: z.boolean().optional(),
    lists_unreadable: z.boolean().optional(),
  }),
  workspace: z.strictObject({
    name: z.string().optional(),
    readable: z.boolean().optional(),
    deleted: z.boolean().optional(),
  }),
  project: z.strictObject({ name: z.string().optional(), dropped: z.boolean().optional() }),
  user: z.strictObject({ email: z.string().nullable() }),
  arrivals: z.strictObject({ ...cell, traces: z.int().min(1), trace_tier: tier.default("shortlived") }),
  upgrades: z.strictObject({ ...cell, traces: z.int().min(1), from: instant.optional() }),
  deploymentUsage: z.strictObject({ ...cell, measure: z.enum(deploymentMeasures), delta: z.int() }),
  sandbox: z.strictObject({ dropped: z.boolean() }),
  sandboxUsage: z.strictObject({
    resource_id: z.string(),
    hour: instant,
    measure: z.enum(sandboxMeasures),
    /** Millionths of a unit. */
    delta: z.int(),
  }),
  evaluatorRule: z.strictObject({
    limit_usd: z.number().positive().nullable().optional(),
    dropped: z.boolean().optional(),
  }),
  evaluatorSpend: z.strictObject({
    rule_id: z.string(),
    date: z.iso.date().transform((text) => Date.parse(text)),
    measure: z.enum(evaluatorMeasures),
    /** Traces, or billionths of a dollar. */
    delta: z.int(),
  }),
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
  drift: z.strictObject({
    metric: z.enum(Object.keys(METRICS) as [Metric, ...Metric[]]).default("traces"),
    /** Need not be one of the organisation: a contract may join several. */
    workspace_id: z.string().min(1),
    at: instant,
    delta: z.int().nullable(),
  }),
  limits: z.array(
    z.strictObject({
      workspace_id: z.string().nullable(),
      limit_type: z.string(),
      limit_value: z.number().nullable(),
      scope: z.string().optional(),
    }),
  ),
  period: z.strictObject({ day: z.int().min(1).max(28) }),
  rejecting: z.strictObject({ limit_type: z.string().nullable() }),
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
    const { organisation, ledger, deploymentLedger } = world;
    const project = (isDeployed ? deploymentOf : projectOf)(organisation, of.project_id);
    if (of.workspace_id !== undefined && of.workspace_id !== project.workspace.id) {
      throw problem(["workspace_id"], `project ${project.id} is in workspace ${project.workspace.id}`);
    }
    const start = (isDeployed ? deploymentLedger : ledger).start;
    if (of.hour < start) throw problem(["hour"], "before the data start");
    const user = of.user_id === null ? null : userOf(organisation, of.user_id);
    const key = of.api_key_short_key === null ? null : keyOf(organisation, of.api_key_short_key);
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
    route("PATCH", "/access", bodies.access, (given) => {
      const { access } = world;
      access.apiKey = given.api_key ?? access.apiKey;
      access.revoked = given.revoked ?? access.revoked;
      access.organizationRead = given.organization_read ?? access.organizationRead;
      access.organizationScoped = given.organization_scoped ?? access.organizationScoped;
      access.organizationManage = given.organization_manage ?? access.organizationManage;
      access.listsUnreadable = given.lists_unreadable ?? access.listsUnreadable;
      return access.inspect();
    }),
    route("PATCH", "/workspaces/:id", bodies.workspace, ({ name, readable, deleted }, { id = "" }) => {
      const workspace = workspaceOf(world.organisation, id);
      workspace.name = name ?? workspace.name;
      if (readable !== undefined) world.access.setReadable(workspace, readable);
      if (deleted !== undefined) workspace.deletedAt = deleted ? (workspace.deletedAt ?? world.now()) : null;
    }),
    ...(
      [
        ["projects", projectOf],
        ["deployments", deploymentOf],
      ] as const
    ).map(([path, find]) =>
      route("PATCH", `/${path}/:id`, bodies.project, ({ name, dropped }, { id = "" }) => {
        const project = find(world.organisation, id);
        project.name = name ?? project.name;
        project.dropped = dropped ?? project.dropped;
      }),
    ),
    route("PATCH", "/sandboxes/:id", bodies.sandbox, ({ dropped }, { id = "" }) => {
      sandboxOf(world.organisation, id).dropped = dropped;
    }),
    route("PATCH", "/evaluator-rules/:id", bodies.evaluatorRule, ({ limit_usd, dropped }, { id = "" }) => {
      const rule = evaluatorRuleOf(world.organisation, id);
      if (limit_usd !== undefined) rule.limitUsd = limit_usd;
      rule.dropped = dropped ?? rule.dropped;
    }),
    route("PATCH", "/users/:id", bodies.user, ({ email }, { id = "" }) => {
      userOf(world.organisation, id).email = email;
    }),
    route("POST", "/templates", newTemplate, (given) => templates().create(given)),
    route("POST", "/arrivals", bodies.arrivals, (of) =>
      world.ledger.change(cellOf(of), of.traces, of.trace_tier),
    ),
    route("POST", "/upgrades", bodies.upgrades, (of) => world.ledger.upgrade(cellOf(of), of.traces, of.from)),
    route("POST", "/deployment-usage", bodies.deploymentUsage, (of) =>
      world.deploymentLedger.change(cellOf(of, true), of.measure, of.delta),
    ),
    route("POST", "/sandbox-usage", bodies.sandboxUsage, ({ resource_id: resourceId, hour, ...of }) => {
      if (hour < world.sandboxLedger.start) throw problem(["hour"], "before the data start");
      return world.sandboxLedger.change({ resourceId, at: hour, ...of });
    }),
    route("POST", "/evaluator-spend", bodies.evaluatorSpend, ({ rule_id: ruleId, date, ...of }) => {
      if (date < world.evaluatorLedger.start) throw problem(["date"], "before the data start");
      return world.evaluatorLedger.change({ ruleId, at: date, ...of });
    }),
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
    route("POST", "/provider-drift", bodies.drift, ({ workspace_id: workspaceId, ...drift }) => {
      world.bill.drifts.push({ ...drift, workspaceId });
    }),
    route("DELETE", "/provider-drift", nothing, () => {
      world.bill.drifts.length = 0;
    }),
    route("POST", "/usage-limits", bodies.limits, (given) => {
      const { limits } = world.bill;
      limits.length = 0;
      for (const { workspace_id: workspaceId, limit_type: limitType, limit_value: value, scope } of given)
        limits.push({ workspaceId, limitType, value, scope });
    }),
    route("PATCH", "/billing-period", bodies.period, ({ day }) => {
      world.bill.periodDay = day;
    }),
    route("PATCH", "/rejecting/:id", bodies.rejecting, ({ limit_type }, { id = "" }) => {
      const workspace = workspaceOf(world.organisation, id);
      if (limit_type === null) world.bill.rejecting.delete(workspace.id);
      else world.bill.rejecting.set(workspace.id, limit_type);
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
