import fc from "fast-check";
import { expect, test } from "vitest";
import { monthAt, monthBefore } from "../../../../src/core/domain/months/month.ts";
import { DAY_MS, HOUR_MS } from "../../../../src/core/domain/time/stride.ts";
import { amountText } from "../../../../src/core/domain/usage/amount.ts";
import { readBill } from "../../../../src/features/costs/read-bill.ts";
import type { FaultStep } from "../../../../src/features/standin/engine/faults.ts";
import type { SandboxHour } from "../../../../src/features/standin/engine/sandboxes.ts";
import { billRows } from "../../../support/bill-rows.ts";
import { createPrices } from "../../../support/charges.ts";
import { now } from "../../../support/clock.ts";
import { seed, times } from "../../../support/drawn.ts";
import { setup } from "../../../support/source.ts";

const SEED = seed();
const TEN = 10n ** 10n;

test("each line of a month's bill is what the platform's data gives", async () => {
  const month = monthBefore(monthAt(now() - 4 * DAY_MS));
  const [start, end] = [Date.parse(month.start), Date.parse(month.end)];
  const days = Math.floor(now() / DAY_MS) - start / DAY_MS + 1;
  const bench = await setup({
    days,
    workspaces: [0, 1],
    hourlyForMs: HOUR_MS,
    standin: { contract: "day-granular", deploymentStart: month.start, sandboxes: "on", scale: 0.5 },
  });
  const meters = ["traces", "longlived", "deployments", "sandboxes"] as const;
  await bench.sync({ settings: { meters: [...meters] } });
  const from = "2020-01-01";
  const lcu = { sku: "lcu", measure: "lcu", from } as const;
  await createPrices(bench.store, [
    { sku: "traces", unitPrice: "0", from },
    { sku: "traces", unitPrice: "0.0005", fromQuantity: 1000, from },
    { sku: "longlived", measure: "longlived", unitPrice: "0.0045", from },
    { ...lcu, unitPrice: "0" },
    { ...lcu, unitPrice: "1.5", fromQuantity: 5 },
    { sku: "lsu", measure: "lsu", unitPrice: "0.0625", from },
    { sku: "csu", measure: "compute_standard_units", unitPrice: "0.25", from },
    { sku: "runs", measure: "agent_runs", unitPrice: "0.001", from },
  ]);

  const { ledger, deploymentLedger, sandboxLedger, organisation } = bench.standin;
  const isOwn = (id: string) => bench.workspaceIds.includes(id);
  const sum = (counts: Iterable<number>) => [...counts].reduce((all, one) => all + BigInt(one), 0n);
  const streams = organisation.streams.filter(({ project }) => isOwn(project.workspace.id));
  const traces = sum(streams.map((one) => ledger.counts(one, [start, end], null)[0] ?? 0));
  const longlived = sum(streams.map((one) => ledger.counts(one, [start, end], "longlived")[0] ?? 0));
  const runs = sum(
    organisation.deploymentStreams
      .filter(({ project }) => isOwn(project.workspace.id))
      .map((one) => deploymentLedger.counts(one, [start, end], "agent_runs")[0] ?? 0),
  );
  const hours = bench.workspaceIds.flatMap((workspaceId) => sandboxLedger.hours({ workspaceId, start, end }));
  const units = (measure: "lcu" | "lsu" | "compute_standard_units" | "storage_standard_units") => {
    const dayOf = ({ workspaceId, hour }: SandboxHour) => `${workspaceId} ${Math.floor(hour / DAY_MS)}`;
    const all = [...Map.groupBy(hours, dayOf).values()];
    const known = all.filter((some) => some.every((one) => one[measure] !== null));
    return {
      quantity: sum(known.flatMap((some) => some.map((one) => one[measure] as number))),
      isWhole: known.length === all.length,
    };
  };
  const line = (of: string, measure: string, quantity: bigint, price?: bigint) =>
    [
      of,
      measure,
      amountText(quantity),
      price === undefined ? null : amountText((quantity * price) / TEN),
    ].join(" ");
  const whole = (count: bigint) => count * TEN;
  const parts = (millionths: bigint) => millionths * 10_000n;
  const [lcus, lsus, csus, ssus] = (
    ["lcu", "lsu", "compute_standard_units", "storage_standard_units"] as const
  ).map(units) as [ReturnType<typeof units>, ...ReturnType<typeof units>[]] as ReturnType<typeof units>[];
  const tiers = (of: string, measure: string, quantity: bigint, free: bigint, price: bigint) =>
    quantity <= free
      ? [line(of, measure, quantity, 0n)]
      : [line(of, measure, free, 0n), line(of, measure, quantity - free, price)];
  const isByUnits = month.start >= "2026-10-01";
  const expected = [
    ...tiers("charge", "traces", whole(traces), whole(1000n), 5_000_000n),
    line("charge", "longlived", whole(longlived), 45_000_000n),
    ...tiers("charge", "lcu", parts(lcus?.quantity ?? 0n), whole(5n), 15_000_000_000n),
    line("charge", "lsu", parts(lsus?.quantity ?? 0n), 625_000_000n),
    line("charge", "compute_standard_units", parts(csus?.quantity ?? 0n), 2_500_000_000n),
    ...(csus?.isWhole === false ? ["not_available compute_standard_units  "] : []),
    line("counted_apart", "storage_standard_units", parts(ssus?.quantity ?? 0n)),
    line(isByUnits ? "estimate" : "charge", "agent_runs", whole(runs), 10_000_000n),
    ...(isByUnits ? ["not_reported deployment_lcu  ", "not_reported deployment_lsu  "] : []),
  ];
  const rows = await bench.sql<{ line: string }>(
    `SELECT line || ' ' || measure || ' ' || coalesce(trim_scale(quantity)::text, '') || ' '
              || coalesce(trim_scale(estimated_cost)::text, '') AS line
     FROM reporting.usage_bill_monthly WHERE month_start = $1`,
    [month.start],
  );
  expect(rows.map((row) => row.line).sort()).toEqual(expected.sort());
  expect([traces > 1000n, longlived > 0n, runs > 0n, csus?.isWhole]).toEqual([true, true, true, false]);
});

const PATHS = {
  members: "/members/active",
  gateway_spend: "/gateway-policies",
  engine_units: "/issues-agent/",
  billing_period: "/orgs/current/billing",
  provider_totals: "/billing/usage",
} as const;
const page = (body: string, content_type: string): FaultStep["fault"] => ({
  kind: "status",
  status: 200,
  body,
  content_type,
});
const FAULTS: readonly FaultStep["fault"][] = [
  ...[400, 401, 403, 404, 422, 429, 500, 503].map((status) => ({ kind: "status", status }) as const),
  { kind: "reset" },
  { kind: "cut", framing: "length", at: "half" },
  page("<html>Sign in</html>", "text/html"),
  page("", "application/json"),
  page("null", "application/json"),
  page("{}", "application/json"),
];

test(`readings of the bill that fail in any way end complete, and say so on the way (SEED=${SEED})`, async () => {
  const bench = await setup({ workspaces: [0], days: 40, hourlyForMs: HOUR_MS, standin: { engine: "on" } });
  await bench.sync();
  const read = async () => readBill(await bench.open(), { reach: "month", isPatient: false });
  await read();
  const right = await billRows(bench);
  const part = fc.constantFrom(...(Object.keys(PATHS) as (keyof typeof PATHS)[]));
  const step = fc.record({
    part,
    fault: fc.constantFrom(...FAULTS),
    skip: fc.nat(2),
    times: fc.constantFrom(1, 50),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 4 }), async (steps) => {
      await bench.sql("DELETE FROM usage.statement_line");
      await bench.sql("DELETE FROM usage.bill_part");
      const { faults } = bench.standin;
      const source = await bench.open();
      for (const { part, fault, skip, times } of steps)
        faults.script({ fault, match: { path: PATHS[part] }, times, ...(skip === 0 ? {} : { skip }) });
      const { failed, parts, provider } = await readBill(source, {
        reach: "month",
        isPatient: false,
      });
      const refusals = { ...parts, provider_totals: provider };
      const rows = await billRows(bench);
      for (const one of Object.keys(PATHS) as (keyof typeof PATHS)[]) {
        const isNamed =
          failed.some(({ part }) => part === one) ||
          (refusals[one]?.refusal ?? null) !== null ||
          (one === "provider_totals" && (provider?.failed.length ?? 0) > 0);
        if (!isNamed) expect(rows[one], one).toEqual(right[one]);
        else
          expect(
            rows[one].filter((line) => !right[one].includes(line)),
            one,
          ).toEqual([]);
      }
      faults.clear();
      await bench.sql("DELETE FROM usage.bill_part");
      expect((await read()).failed).toEqual([]);
      expect(await billRows(bench)).toEqual(right);
    }),
    { seed: SEED, numRuns: times(6) },
  );
});
