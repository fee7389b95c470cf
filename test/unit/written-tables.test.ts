import { globSync, readFileSync } from "node:fs";
import { expect, test } from "vitest";

/**
 * Each table has one module that writes it. What follows from a write (charges, proof, state) is called there, and nobody can
 * forget it. A statement of another module is an error, unless `OTHERS` says why it stays.
 */

const MODULES: Readonly<Record<string, readonly string[]>> = {
  "features/owners/alert-routes.store.ts": ["route"],
  "web/ended-sessions.ts": ["ended_session"],
  "features/owners/notifications.store.ts": ["notification", "route_state"],
  "features/costs/added-line.ts": ["added_line"],
  "features/costs/statement-lines.store.ts": ["statement_line"],
  "features/costs/bill-terms.store.ts": ["bill_part", "billing_period", "unloaded_workspace", "usage_limit"],
  "features/costs/logged-changes.store.ts": ["logged_change"],
  "features/owners/owners.store.ts": ["owner_file", "owner_rule", "owner_share", "budget"],
  "features/costs/prices.store.ts": ["sku", "price", "price_tier"],
  "catalog/entities.ts": ["entity"],
  "catalog/entity-names.ts": ["entity_name"],
  "catalog/learn-keys.ts": ["series"],
  "catalog/listed-keys.ts": ["listed_key"],
  "features/costs/resource-tags.store.ts": ["resource_tag"],
  "catalog/run-rules.ts": ["run_rule"],
  "catalog/scopes.ts": ["scope"],
  "catalog/server-capabilities.ts": ["source_fact"],
  "catalog/source-meters.ts": ["source_meter"],
  "catalog/sources.ts": ["source"],
  "access/invalidate-zeros.ts": ["withdrawal"],
  "catalog/write-workspaces.ts": ["workspace"],
  "catalog/failures.ts": ["failure"],
  "work/fetch-ledger.ts": ["fetch"],
  "load/load-statements.ts": ["dated_record", "hourly_record", "restatement", "late_change"],
  "load/month-totals.ts": ["monthly_total"],
  "load/replace-coverage.ts": ["coverage", "became_final"],
  "features/close/close-period.store.ts": ["close", "closed_workspace", "closed_total"],
  "features/costs/keep-costs.store.ts": ["closed_charge", "closed_correction"],
  "features/invoice/invoices.store.ts": ["invoice", "invoice_line"],
  "features/invoice/rules.store.ts": ["invoice_rule"],
  "features/invoice/match.store.ts": ["invoice_match", "invoice_match_line", "invoice_cause"],
  "features/invoice/settlements.store.ts": ["invoice_settlement"],
  "proof/control-findings.ts": ["control_check"],
  "proof/write-differences.ts": ["difference"],
  "coverage/proved-time.ts": ["reconciled", "matched_total"],
  "features/costs/provider-totals.store.ts": ["provider_total"],
  "work/backfills.ts": ["backfill"],
  "work/operator-actions.ts": ["operator_action"],
  "work/runs.ts": ["run"],
  "work/tasks.ts": ["fetch_task"],
};

const OTHERS: readonly { readonly file: string; readonly why: string; readonly tables: readonly string[] }[] =
  [
    {
      file: "features/catalog/forget.store.ts",
      why: "removes a workspace or a source whole; its charges are due",
      tables: ["backfill", "fetch_task", "series", "entity_name", "entity", "scope"],
    },
    {
      file: "retention/prune.ts",
      why: "removes what is older than the settings keep; coverage and proof go with the hours",
      tables: [
        ...["fetch", "fetch_task", "entity_name", "restatement", "became_final", "withdrawal", "late_change"],
        ...["hourly_record", "coverage"],
      ],
    },
    {
      file: "retention/compact.ts",
      why: "merges intervals, and changes no time of them; triggers keep the state of coverage",
      tables: ["coverage"],
    },
    {
      file: "access/invalidate-zeros.ts",
      why: "one statement finds the zeros and moves them; triggers keep the state of coverage and failures",
      tables: ["coverage", "became_final", "failure"],
    },
    {
      file: "features/catalog/move-data-start.store.ts",
      why: "removes all time before a data start; triggers keep the state of coverage and failures",
      tables: ["coverage", "failure", "fetch_task", "dated_record", "hourly_record"],
    },
    {
      file: "catalog/write-workspaces.ts",
      why: "a workspace is an entity that needs no name",
      tables: ["entity"],
    },
    {
      file: "proof/changed-records.ts",
      why: "repairs what somebody changed past the triggers",
      tables: ["coverage", "monthly_total"],
    },
    {
      file: "load/load.ts",
      why: "a first load copies its rows straight into the table; a load ends the failures of its window",
      tables: ["dated_record", "hourly_record", "failure"],
    },
    {
      file: "work/backfills.ts",
      why: "a backfill ends with its tasks and run",
      tables: ["fetch_task", "run"],
    },
    { file: "features/costs/keep-costs.store.ts", why: "closes the costs of a close", tables: ["close"] },
  ];

const NAMED_ELSEWHERE: Readonly<Record<string, readonly string[] | undefined>> = {
  "catalog/scope-time.ts": undefined,
  "features/catalog/move-data-start.store.ts": ["dated_record", "hourly_record"],
  "features/catalog/forget.store.ts": undefined,
  "db/copy.ts": undefined,
  "load/load-statements.ts": ["dated_record", "hourly_record"],
  "proof/export-stage.ts": undefined,
  "coverage/proved-time.ts": ["reconciled", "matched_total"],
};

const STATEMENT =
  /\b(?:insert\s+into|delete\s+from|merge\s+into|truncate|copy|update)\s+(?:only\s+)?(?:usage\.(\w+)|(\$\{))/gi;
const FUNCTIONS: Readonly<Record<string, readonly string[]>> = {
  "migrations/0001_baseline/10_source.sql": ["configuration_change"],
  "migrations/0001_baseline/20_entity.sql": ["entity_name", "recent_naming"],
  "migrations/0001_baseline/45_day_state.sql": ["charge_due", "day_state", "hour_state"],
  "migrations/0001_baseline/60_proof.sql": ["day_proof"],
  "migrations/0001_baseline/82_charge.sql": ["charge_due"],
  "reporting/76_charge.sql": ["charge", "charge_day"],
};

const CLEARED = /\bclearTime\(\s*[\w.]+,\s*(?:"(\w+)"|(\w))/g;
const BUILT = /\b(?:insertInto|updateTable|deleteFrom|mergeInto|replaceInto)\(\s*(?:"usage\.(\w+)")?/g;

function writtenBy(file: string, text: string): Set<string> {
  const written = new Set<string>();
  for (const [statement, table] of [STATEMENT, CLEARED, BUILT].flatMap((one) => [...text.matchAll(one)])) {
    if (table !== undefined) written.add(table);
    else {
      expect(Object.keys(NAMED_ELSEWHERE), `${file}: ${statement}`).toContain(file);
      for (const one of NAMED_ELSEWHERE[file] ?? []) written.add(one);
    }
  }
  return written;
}

test("each table is written in its module", () => {
  const found: string[] = [];
  for (const file of globSync("src/**/*.ts")) {
    const name = file.replace(/^src\/(core\/store\/)?/, "");
    for (const table of writtenBy(name, readFileSync(file, "utf8"))) found.push(`${table}: ${name}`);
  }
  found.push(
    "dated_record: load/load.ts",
    "hourly_record: load/load.ts",
    "entity_name: catalog/entity-names.ts",
  );
  const named = [
    ...Object.entries(MODULES).flatMap(([file, tables]) => tables.map((table) => `${table}: ${file}`)),
    ...OTHERS.flatMap(({ file, tables }) => tables.map((table) => `${table}: ${file}`)),
  ];
  expect([...new Set(found)].sort()).toEqual(named.sort());
  const modules = Object.values(MODULES).flat();
  expect(modules.length).toBe(new Set(modules).size);
});

test("functions in SQL write no other tables", () => {
  const found = globSync("sql/{migrations,reporting}/**/*.sql").flatMap((file) => {
    const tables = [...readFileSync(file, "utf8").matchAll(STATEMENT)].flatMap(([, table]) => table ?? []);
    return tables.length === 0 ? [] : [[file.replace("sql/", ""), [...new Set(tables)].sort()]];
  });
  expect(Object.fromEntries(found)).toEqual(FUNCTIONS);
});
