import { describe, expect, test } from "vitest";
import { monthAt, monthBefore } from "../../src/core/domain/months/month.ts";
import { DAY_MS, HOUR_MS } from "../../src/core/domain/time/stride.ts";
import type { Meter } from "../../src/core/domain/usage/meter.ts";
import type { BillPart } from "../../src/features/costs/bill-terms.store.ts";
import { type ReadBill, readBill } from "../../src/features/costs/read-bill.ts";
import { billRows, PARTS } from "../support/bill-rows.ts";
import { now } from "../support/clock.ts";
import { startProxy } from "../support/proxy.ts";
import { type Bench, setup } from "../support/source.ts";

const RESPONSES = [
  "401",
  "403",
  "404",
  "429",
  "500",
  "HTML with 200",
  "an empty page with a cursor",
  "a page that repeats",
  "an amount of another type",
  "a negative amount",
  "an amount of 30 digits",
  "an amount that is null",
] as const;
type Response = (typeof RESPONSES)[number];

type Outcome = "refused" | "failed" | "read" | "unknown" | "logged";

interface Endpoint {
  readonly path: RegExp;
  /** Puts a value in the place of the first amount. Default: the response has no amounts. */
  readonly put?: (body: never, amount: unknown) => void;
  readonly place?: string;
  /** An amount of this type is refused. Default: a text. */
  readonly otherType?: unknown;
  readonly paged?: "next_cursor" | "cursor";
}

interface BillEndpoint extends Endpoint {
  readonly part: BillPart;
  /** Default: 401, 403 and 404 are `refused`, all else is `failed`. */
  readonly outcomes?: Partial<Record<Response, Outcome>>;
  readonly unknown?: RegExp;
  readonly isContact?: true;
}

const NEVER_FAILED = Object.fromEntries(RESPONSES.map((one) => [one, "logged"])) as Record<Response, Outcome>;
const ALL_REFUSED = Object.fromEntries(RESPONSES.map((one) => [one, "refused"])) as Record<Response, Outcome>;
const UNKNOWN = {
  "an amount of another type": "unknown",
  "a negative amount": "unknown",
  "an amount of 30 digits": "unknown",
  "an amount that is null": "unknown",
} as const;
const REFUSED_ALONE = { "401": "logged", "403": "logged", "404": "logged" } as const;
const PAGES = {
  paged: "next_cursor",
  outcomes: { ...NEVER_FAILED, "an empty page with a cursor": "read" },
} as const;

const ENDPOINTS: Readonly<Record<string, BillEndpoint>> = {
  "provider totals": {
    part: "provider_totals",
    path: /\/billing\/usage\?/,
    put: ([total]: { groups: Record<string, unknown> }[], amount) => {
      const [id = ""] = Object.keys(total?.groups ?? {});
      if (total !== undefined) total.groups[id] = amount;
    },
    place: "total 0: groups has",
    outcomes: { "an amount that is null": "unknown" },
    unknown: /not_the_sum|unknown_value/,
  },
  "limits of the organization": {
    part: "usage_limits",
    path: /\/usage-limits\/org$/,
    put: ([limit]: { limit_value: unknown }[], amount) => {
      if (limit !== undefined) limit.limit_value = amount;
    },
    place: "0.limit_value",
    outcomes: { ...REFUSED_ALONE, "an amount that is null": "unknown" },
    unknown: /^ monthly_traces f$/,
  },
  "whether a workspace rejects traces": {
    part: "usage_limits",
    path: /\/current\/usage_limits$/,
    put: (body: object, amount) => void Object.assign(body, { tenant_limit: amount }),
    place: "tenant_limit",
    outcomes: { ...REFUSED_ALONE, "an amount that is null": "read" },
  },
  "the billing period": {
    part: "billing_period",
    path: /\/orgs\/current\/billing$/,
    put: (body: object, amount) => void Object.assign(body, { fleet_lcu_spend_limit_monthly: amount }),
    otherType: true,
    outcomes: UNKNOWN,
    unknown: /^fleet_limit.* (fleet_lcu_spend_limit_monthly is .*not an amount|no limit)$/,
  },
  members: { part: "members", path: /\/members\/active/ },
  "spend through the gateway": {
    part: "gateway_spend",
    path: /\/gateway-policies\?/,
    put: ([policy]: object[], amount) => void Object.assign(policy ?? {}, { current_spend_usd: amount }),
    outcomes: UNKNOWN,
    unknown: /monthly.* (0\.current_spend_usd is .*, not an amount|the platform does not know it)$/,
  },
  "units of Engine": {
    part: "engine_units",
    path: /\/issues-agent\/lcu-spend/,
    put: ({ items: [item] }: { items: object[] }, amount) =>
      void Object.assign(item ?? {}, { lcu_total: amount }),
    otherType: 0.5,
    // No figure needs them, so no response is a failure.
    outcomes: { ...ALL_REFUSED, ...UNKNOWN },
    unknown: /^engine_units.* (items\.0\.lcu_total is .*, not an amount|the platform does not know it)$/,
  },
  "the limit of Engine": {
    part: "engine_limit",
    path: /\/orgs\/current$/,
    isContact: true,
    put: (body: object, amount) => void Object.assign(body, { engine_lcu_spend_limit_monthly: amount }),
    otherType: true,
    outcomes: UNKNOWN,
    unknown: /^engine_limit.* (engine_lcu_spend_limit_monthly is .*, not an amount|no limit)$/,
  },
  "tags of resources": { part: "resource_tags", path: /\/taggings$/ },
  "usage of all workspaces": {
    part: "all_workspaces",
    path: /\/granular-usage\?(?!.*workspace_ids)/,
    put: ({ usage: [record] }: { usage: object[] }, amount) =>
      void Object.assign(record ?? {}, { traces: amount }),
    place: "usage[0].traces",
    outcomes: { "500": "refused" },
  },
  "names of the organization's keys": { part: "names", path: /\/service-keys$/, outcomes: NEVER_FAILED },
  "names of people's keys": { part: "names", path: /\/api\/v1\/api-key$/, outcomes: NEVER_FAILED },
  "names of sandboxes": { part: "names", path: /\/sandboxes\/boxes/, ...PAGES },
  "the audit log": {
    part: "audit_log",
    path: /\/audit-logs/,
    paged: "cursor",
    outcomes: { "an empty page with a cursor": "read" },
  },
  "names of snapshots": { part: "names", path: /\/sandboxes\/snapshots/, ...PAGES },
};

const METERS: Readonly<Partial<Record<Meter, Endpoint>>> = {
  sandboxes: {
    path: /\/sandboxes\/usage\/costs/,
    put: ({ items: [item] }: { items: object[] }, amount) => void Object.assign(item ?? {}, { lcu: amount }),
    otherType: 0.5,
    paged: "next_cursor",
  },
  evaluators: {
    path: /\/evaluators\/spend/,
    put: ({ groups: [group] }: { groups: { days: object[] }[] }, amount) =>
      void Object.assign(group?.days[0] ?? {}, { spend_usd: amount }),
  },
};

async function forget({ sql }: Bench): Promise<void> {
  for (const table of [
    "provider_total",
    "usage_limit",
    "billing_period",
    "resource_tag",
    "unloaded_workspace",
    "logged_change",
    "bill_part",
    "statement_line",
  ])
    await sql(`DELETE FROM usage.${table}`);
  await sql(
    "DELETE FROM usage.entity_name n USING usage.entity e WHERE e.entity_id = n.entity_id AND e.dimension IN ('api_key', 'sandbox')",
  );
}

const DIGITS_30 = "123456789012345678901234567890";

function replaced(
  { paged, put, otherType = "5" }: Endpoint,
  response: Response,
  { text, url }: { text: string; url: URL },
) {
  if (/^\d+$/.test(response))
    return { status: Number(response), body: JSON.stringify({ detail: `it says ${response}` }) };
  if (response === "HTML with 200") return "<html>Sign in</html>";
  if (response === "an empty page with a cursor" || response === "a page that repeats") {
    if (paged === undefined) return JSON.stringify({ items: [], next_cursor: "0" });
    const { items, [paged]: next } = JSON.parse(text);
    if (response === "a page that repeats") return JSON.stringify({ items, [paged]: next ?? "0" });
    return url.searchParams.has("cursor") ? text : JSON.stringify({ items: [], [paged]: "0" });
  }
  const body = JSON.parse(text);
  const amounts: Partial<Record<Response, unknown>> = {
    "an amount of another type": otherType,
    "a negative amount": typeof otherType === "number" ? "-1" : -1,
    "an amount of 30 digits": DIGITS_30,
    "an amount that is null": null,
  };
  put?.(body as never, amounts[response]);
  // JSON numbers may have any digits, but JavaScript cannot write them.
  return typeof otherType === "number"
    ? JSON.stringify(body)
    : JSON.stringify(body).replace(`"${DIGITS_30}"`, DIGITS_30);
}

const isFor = ({ path }: Endpoint, { pathname, search }: URL) => path.test(pathname + search);

function saidOf(bill: ReadBill, part: BillPart, { logs }: Bench) {
  const { provider, failed } = bill;
  const read = part === "provider_totals" ? provider : bill.parts[part];
  const months = part === "provider_totals" ? (provider?.failed ?? []) : [];
  return {
    refused: read?.refusal ?? "",
    failed: [...failed, ...months].map(({ message }) => message).join(),
    logged: logs
      .filter(({ level }) => Number(level) >= 30)
      .map(({ msg }) => msg)
      .join(),
  };
}

test("each response of each endpoint of the bill costs its own part alone, and is named", async () => {
  const start = monthBefore(monthAt(now() - 4 * DAY_MS)).start;
  const days = Math.floor(now() / DAY_MS) - Date.parse(start) / DAY_MS + 1;
  const switches = {
    tags: "on",
    sandboxes: "on",
    workspaceIds: "optional",
    auditLog: "on",
    engine: "on",
  } as const;
  const standin = { scale: 0.34, ...switches };
  const bench = await setup({ days, workspaces: [0, 1], hourlyForMs: HOUR_MS, standin });
  const { bill } = bench.standin;
  for (const workspaceId of [null, ...bench.workspaceIds])
    bill.limits.push({ workspaceId, limitType: "monthly_traces", value: 7 });
  const change = { operation: "update_ttl_settings", workspaceId: null, userId: null, succeeded: true };
  bill.changes.push({ ...change, at: bench.now - DAY_MS });
  bill.rejecting.set(bench.workspaceIds[0] ?? "", "payload_size");
  await bench.sync({ settings: { meters: ["traces", "sandboxes"] } });
  const read = async (baseUrl = bench.standin.url) =>
    readBill(await bench.open({ baseUrl }), { reach: "month", isPatient: false });
  await read();
  const right = await billRows(bench);
  for (const part of PARTS) expect(right[part].length, part).toBeGreaterThan(0);

  for (const [name, endpoint] of Object.entries(ENDPOINTS)) {
    const { part, path, put, place = "", outcomes = {}, unknown = /(?!)/ } = endpoint;
    const { [part]: ofPart, ...ofOthers } = right;
    for (const response of RESPONSES) {
      if (response.includes("amount") && put === undefined) continue;
      const about = `${name}: ${response}`;
      const isStatus = /^40[134]$/.test(response);
      const outcome = outcomes[response] ?? (isStatus ? "refused" : "failed");
      await forget(bench);
      let contacts = endpoint.isContact === true ? 1 : 0;
      const proxy = await startProxy(bench.standin.url, (given) =>
        isFor(endpoint, given.url) && contacts-- <= 0 ? replaced(endpoint, response, given) : undefined,
      );
      bench.logs.length = 0;
      const said = saidOf(await read(proxy.url), part, bench);
      const { [part]: own, ...others } = await billRows(bench);
      expect(others, about).toEqual(ofOthers);
      expect(
        own.filter((line) => !ofPart.includes(line) && !unknown.test(line)),
        about,
      ).toEqual([]);
      if (outcome === "read") expect(own, about).toEqual(ofPart);
      else if (outcome === "unknown")
        expect(
          own.some((line) => unknown.test(line)),
          about,
        ).toBe(true);
      else {
        expect(said[outcome], about).toMatch(new RegExp(path.source.replace("$", "")));
        if (response.includes("amount")) expect(said[outcome], about).toContain(place);
      }
      expect(said.failed === "", about).toBe(outcome !== "failed");
    }
    await bench.sql("DELETE FROM usage.bill_part WHERE part = 'engine_units'");
    await read();
    expect(await billRows(bench), name).toEqual(right);
  }
});

describe.each(Object.entries(METERS) as [Meter, Endpoint][])("%s", (meter, endpoint) => {
  const meters = { settings: { meters: ["traces", meter] as Meter[] } };
  const setupMeter = (at?: number) => {
    const start = new Date((at ?? now()) - 4 * DAY_MS).toISOString().slice(0, 10);
    const standin = { sandboxes: "on", evaluators: "on", deploymentStart: start } as const;
    return setup({ days: 4, workspaces: [0, 1], hourlyForMs: HOUR_MS, standin, ...(at && { now: at }) });
  };
  const shown = async ({ sql }: Bench) =>
    (
      await sql<{ line: string }>(
        `SELECT concat_ws(' ', usage_date, workspace_id, dimension_id, measure, quantity) AS line
         FROM reporting_detail.fct_other_usage_daily WHERE meter = '${meter}' AND quantity > 0`,
      )
    )
      .map(({ line }) => line)
      .sort();

  test.each(RESPONSES)(
    "%s: no wrong figure is stored, and no day is missing without a word",
    async (response) => {
      const bench = await setupMeter();
      const calm = await setupMeter(bench.now);
      await calm.sync(meters);
      const right = await shown(calm);
      expect(right.length).toBeGreaterThan(3);
      const proxy = await startProxy(bench.standin.url, (given) =>
        isFor(endpoint, given.url) ? replaced(endpoint, response, given) : undefined,
      );
      const disturbed = async () => {
        const failures = await bench.sync({ ...meters, baseUrl: proxy.url }).then(
          ({ run }) => run.failures,
          (error: Error) => [error],
        );
        const states = await bench.sql<{ message: string }>(
          `SELECT evidence AS message FROM usage.source_meter WHERE meter = '${meter}' AND state <> 'counted'`,
        );
        const said = [...failures, ...states].map(({ message }) => message).join();
        return { found: await shown(bench), said };
      };
      const { found, said } = await disturbed();
      expect(found.filter((line) => !right.includes(line))).toEqual([]);
      if (found.length < right.length) expect(said).toMatch(endpoint.path);
      await bench.passTime();
      await bench.sync(meters);
      expect(await shown(bench)).toEqual(right);
      expect((await disturbed()).found).toEqual(right);
    },
  );
});
