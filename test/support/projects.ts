type Projects = Readonly<Record<string, readonly string[]>>;

export const GATE: Projects = {
  unit: ["unit"],
  contract: ["contract"],
  store: ["integration/store"],
  pipeline: ["integration/pipeline"],
  web: ["integration/web"],
  reporting: ["reporting"],
  journey: ["journey"],
};

/** What proves it against many processes, all pages, other tools and versions: `npm run test:all`. */
export const REST: Projects = {
  service: ["integration/service"],
  "local-servers": ["integration/local-servers"],
  e2e: ["e2e"],
  browser: ["browser"],
  faults: ["faults"],
  tools: ["tools"],
  speed: ["speed"],
};

/**
 * Files of the gate's folders that `npm run test:all` runs instead. They are the project `long`: each takes seconds to minutes, and
 * tests something that seldom happens, or again at length what a shorter test holds.
 */
const LONG: readonly string[] = [
  "integration/store/answer-order.property",
  "integration/store/as-of-limit",
  "integration/store/commit-unknown",
  "integration/store/load-crash",
  "integration/store/load-deadlock",
  "integration/store/load-races",
  "integration/store/managed",
  "integration/store/outage",
  "integration/store/roles",
  "integration/store/silent-postgres",
  "integration/pipeline/extract/outage",
  "integration/web/mcp",
  "integration/web/snapshot",
  "integration/web/workbook",
  "integration/pipeline/backfill/restored",
  "integration/pipeline/bill/provider",
  "integration/pipeline/evaluators",
  "integration/pipeline/sandboxes",
  "integration/pipeline/extract/by-workspace.property",
  "integration/pipeline/extract/by-workspace-servers",
  "integration/pipeline/extract/contracts",
  "integration/pipeline/extract/lost-access",
  "integration/pipeline/extract/lost-access.property",
  "integration/pipeline/probe",
  "integration/pipeline/probe-misbilled",
  "integration/pipeline/reconcile/compared-strides",
  "integration/pipeline/reconcile/meters",
  "integration/pipeline/reconcile/nightly",
  "integration/pipeline/reconcile/nightly-hours",
  "integration/pipeline/reconcile/reconcile.property",
  "integration/pipeline/reconcile/untrusted-export",
  "integration/pipeline/sandboxes-refused",
  "integration/pipeline/sync/ended-meters",
  "integration/pipeline/sync/first-responses.property",
  "integration/pipeline/sync/learned-meters",
  "integration/pipeline/totals/check-totals.property",
  "integration/pipeline/totals/known-findings",
  "integration/pipeline/totals/meters",
  "reporting/export",
  "reporting/export-selection",
  "reporting/focus",
  "reporting/focus-1-4",
  "reporting/focus-corrections",
  "reporting/interrupted-export",
  "reporting/keys",
  "reporting/measured-costs",
  "reporting/other-meters",
  "reporting/owners",
  "reporting/usage-costs.property",
];

export const filesOf = (folders: readonly string[]) => folders.map((folder) => `test/${folder}/**/*.test.ts`);
export const LONG_FILES = LONG.map((file) => `test/${file}.test.ts`);
