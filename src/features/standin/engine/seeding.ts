import {
  type Evaluator,
  type EvaluatorRule,
  type Key,
  type Organisation,
  type Project,
  type Retention,
  type Rhythm,
  type Sandbox,
  SHORT_LIVED,
  type Stream,
  type User,
  type Workspace,
} from "./organisation.ts";
import { type Dice, dice } from "./random.ts";
import { HOUR } from "./trend.ts";

/**
 * Seeded names and ids break naive readers of exports: line breaks, starts of formulas, a repeated name, unreadable workspaces,
 * traffic without a user or key.
 */
const WORKSPACE_NAMES = [
  "Research",
  'Support, "tier 2"',
  "Zürich – 営業",
  "=Operations",
  "Sandbox (nobody yet)",
  "Board only",
];
const EMPTY = 4;
const UNREADABLE = 5;

const PROJECT_NAMES = [
  "default",
  "default",
  "checkout-agent",
  'invoices, "fast lane"',
  "two\nlines",
  "=SUM(A1:A9)",
  "予測-naïve-🚀",
  "+49 hotline",
  "-legacy-",
  "@mentions",
  "\tindented",
  "windows\r\nline",
  "nightly-evals",
  "o'brien's bot",
  " spaces at both ends ",
  `long ${"name ".repeat(40).trim()}`,
];
const EMAILS = [
  "ana@example.com",
  "zoë@exämple.com",
  "o'hara+billing@example.com",
  '"doe, jane"@example.com',
  "=cmd@example.com",
  "-dash@example.com",
  "李雷@例子.example",
];

const DAY_MS = 86_400_000;
const day = (date: string): number => Date.parse(date) / DAY_MS;
/** First days of later projects, so that new ids appear during a load. */
const LATE_STARTS = [day("2026-03-16"), day("2026-06-22")];
const FOREVER = Number.POSITIVE_INFINITY;

export function seedOrganisation({ seed, scale }: { seed: number; scale: number }): Organisation {
  const roll = dice(seed);
  const many = (count: number): number => Math.max(1, Math.round(count * scale));
  const workspaces = WORKSPACE_NAMES.map(
    (name): Workspace => ({ id: roll.uuid(), name, createdAt: Date.parse("2025-11-03"), deletedAt: null }),
  );
  const users = Array.from({ length: many(25) }, (_, i): User => ({ id: roll.uuid(), email: email(i) }));
  const keys = Array.from({ length: many(6) }, (_, i) => ({
    id: roll.uuid(),
    shortKey: shortKey(i, roll),
    description: KEY_NAMES[i % KEY_NAMES.length] ?? null,
  }));
  const organisation: Organisation = {
    id: roll.uuid(),
    name: 'Stand-in, "Inc."',
    workspaces,
    users,
    keys,
    projects: [],
    streams: [],
    deployments: [],
    deploymentStreams: [],
    sandboxes: [],
    evaluators: [],
    unreadable: workspaces.slice(UNREADABLE),
  };
  workspaces.forEach((_, w) => {
    if (w !== EMPTY) seedWorkspace(organisation, roll, { w, projects: many(6) });
  });
  seedDeployments(organisation, seed);
  seedSandboxes(organisation, { seed, many });
  seedEvaluators(organisation, seed);
  return organisation;
}

function seedWorkspace(
  organisation: Organisation,
  roll: Dice,
  { w, projects }: { w: number; projects: number },
): void {
  const workspace = organisation.workspaces[w] as Workspace;
  // Overlapping halves, so that workspaces share users.
  const members = roll.some(organisation.users, Math.ceil(organisation.users.length / 2));
  for (let p = 0; p < projects; p++) {
    const project: Project = {
      id: roll.uuid(),
      name: projectName(w, p),
      workspace,
      dropped: false,
    };
    organisation.projects.push(project);
    const begins = p === 3 ? (LATE_STARTS[w] ?? 0) : 0;
    seedStreams(organisation, roll, { project, members, begins, rhythm: rhythm(w, p), place: p });
  }
}

function seedStreams(
  organisation: Organisation,
  roll: Dice,
  of: Pick<Stream, "project" | "begins" | "rhythm"> & { members: readonly User[]; place: number },
): void {
  const { project, members, begins, rhythm, place } = of;
  const perDay = 20 * 150 ** roll.next();
  const keys = roll.some(organisation.keys, 3);
  const pairs: [User | null, Key | null][] = [
    ...roll.some(members, 7).map((user): [User, Key | null] => [user, roll.pick([...keys, null])]),
    [null, roll.pick(keys)],
    [null, null],
  ];
  const parts = pairs.map(() => roll.next() ** 2 + 0.01);
  const whole = parts.reduce((a, b) => a + b, 0);
  pairs.forEach(([user, key], i) => {
    const moves = user === null ? 1 : roll.next();
    const turn = day("2026-01-05") + roll.below(300);
    const stream: Stream = {
      index: organisation.streams.length,
      project,
      user,
      key,
      retention: retention(place, roll.next()),
      rhythm,
      weight: (perDay * (parts[i] ?? 0)) / whole,
      begins: Math.max(begins, moves < 0.15 ? turn : 0),
      ends: moves > 0.15 && moves < 0.25 ? turn : FOREVER,
      replicas: 0,
    };
    organisation.streams.push(stream);
  });
}

const RULES_FROM = [day("2026-02-09"), day("2026-05-18"), day("2026-08-24")];

/** Two of three projects have a rule. Every second rule runs a week later, when its days are final. */
function retention(place: number, luck: number): Retention {
  const received = luck < 0.4 ? luck / 2 : 0;
  if (place % 3 === 0) return { ...SHORT_LIVED, received, upgraded: received };
  const upgraded = Math.min(1, received + 0.1 + 0.3 * luck);
  const ruleFrom = RULES_FROM[Math.floor(place / 2) % RULES_FROM.length] ?? 0;
  return { received, upgraded, ruleFrom, nightsLater: place % 2 === 0 ? 0 : 7 };
}

/**
 * Every third traced project is also a deployment with the same name (documented) and another id. Separate dice keep the
 * history of traces the same without deployments.
 */
function seedDeployments(organisation: Organisation, seed: number): void {
  const roll = dice(seed + 15_485_863);
  const traced = organisation.workspaces.flatMap(({ id }) =>
    organisation.projects.filter(({ workspace }) => workspace.id === id).filter((_, p) => p % 3 === 2),
  );
  for (const { name, workspace } of traced) {
    const project: Project = { id: roll.uuid(), name, workspace, dropped: false };
    organisation.deployments.push(project);
    const moves = roll.next();
    const turn = day("2026-01-05") + roll.below(300);
    const shape = {
      project,
      rhythm: roll.next() < 0.5 ? ("steady" as const) : ("office" as const),
      retention: SHORT_LIVED,
      begins: moves < 0.2 ? turn : 0,
      ends: moves > 0.9 ? turn : FOREVER,
    };
    const runners: [User | null, Key | null][] = [
      [null, null],
      [null, roll.pick(organisation.keys)],
      ...roll.some(organisation.users, 3).map((user): [User, Key] => [user, roll.pick(organisation.keys)]),
    ];
    for (const [user, key] of runners) {
      // A development deployment has no replica while it is idle.
      const replicas = user === null && key === null ? roll.below(4) : 0;
      const weight = 5 * 40 ** roll.next();
      const index = organisation.deploymentStreams.length;
      organisation.deploymentStreams.push({ ...shape, index, user, key, weight, replicas });
    }
  }
}

/** In every workspace with projects; some begin or end within 2026. Separate dice keep the rest the same. */
function seedSandboxes(
  organisation: Organisation,
  { seed, many }: { seed: number; many: (count: number) => number },
): void {
  const roll = dice(seed + 32_452_843);
  const used = organisation.workspaces.filter((one) =>
    organisation.projects.some(({ workspace }) => workspace === one),
  );
  for (const workspace of used) {
    const types: Sandbox["type"][] = Array.from({ length: many(2 + roll.below(4)) }, () => "SANDBOX");
    for (const type of [...types, "SNAPSHOT" as const]) {
      const moves = roll.next();
      const nth = organisation.sandboxes.length;
      const turn = day("2026-01-05") * DAY_MS + roll.below(300 * 24) * HOUR;
      organisation.sandboxes.push({
        id: roll.uuid(),
        name: `${type === "SNAPSHOT" ? "base image" : "sandbox"} ${nth + 1}`,
        type,
        workspace,
        begins: moves < 0.25 ? turn : 0,
        ends: moves > 0.75 ? turn : FOREVER,
      });
    }
  }
}

const EVALUATOR_NAMES = ["correctness", 'tone, "strict"', "=safety"];

/**
 * Three in the first workspace, up to three in others with projects: by a model, by code, by a model on a dataset. Separate
 * dice keep the rest the same.
 */
function seedEvaluators(organisation: Organisation, seed: number): void {
  const roll = dice(seed + 49_979_687);
  organisation.workspaces.forEach((workspace, w) => {
    const projects = organisation.projects.filter((one) => one.workspace === workspace);
    const count = w === 0 ? EVALUATOR_NAMES.length : roll.below(EVALUATOR_NAMES.length + 1);
    if (projects.length === 0) return;
    EVALUATOR_NAMES.slice(0, count).forEach((name, e) => {
      const type: Evaluator["type"] = e === 1 ? "code" : "llm";
      const id = roll.uuid();
      const attached = e === 2 ? [null] : roll.some(projects, 1 + roll.below(3));
      const rules = attached.map((project, r): EvaluatorRule => {
        const dataset = project === null ? { id: roll.uuid(), name: `golden set, ${workspace.name}` } : null;
        const limitUsd = type === "llm" && r % 2 === 0 ? roll.pick([5, 10, 25]) : null;
        return { id: roll.uuid(), name: `${name} ${r + 1}`, project, dataset, limitUsd };
      });
      organisation.evaluators.push({ id, name, type, workspace, rules });
    });
  });
}

/** One workspace has `default` twice, because a name does not identify a project. */
function projectName(w: number, p: number): string {
  if (w === 1 && p < 2) return "default";
  const name = PROJECT_NAMES[(w * 4 + p) % PROJECT_NAMES.length] ?? "default";
  return p < PROJECT_NAMES.length ? name : `${name} ${p}`;
}

function rhythm(w: number, p: number): Rhythm {
  if (w === 0) return "office";
  if (p % 6 === 4) return "nightly";
  if (w === 2) return "evening";
  return p % 6 === 5 ? "steady" : "office";
}

function email(i: number): string | null {
  return i === EMAILS.length ? null : (EMAILS[i] ?? `user${i}@example.com`);
}

/** One key has no description, one has an address in it, and one begins like a formula. */
const KEY_NAMES = [
  "Production backend",
  "=CI pipeline",
  null,
  "Nightly batch",
  "grace@example.com's laptop",
  "Evaluation",
];

function shortKey(i: number, roll: Dice): string {
  // The second key begins like a formula, because the CSV export guards every cell.
  return `${i === 1 ? "-" : ""}sk...${roll.uuid().slice(0, 4)}${i.toString(36)}`;
}
