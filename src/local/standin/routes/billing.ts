import { toCsv } from "../billing/csv.ts";
import { fromQuery, type UsageQuery } from "../billing/query.ts";
import { toWireUsage } from "../billing/record.ts";
import { answered } from "../billing/spoil.ts";
import type { Usage } from "../billing/usage.ts";
import { json, type Route } from "../http/route.ts";
import type { Answer } from "../http/wire.ts";
import type { Format, World } from "../world.ts";

const PATH = "/api/v1/orgs/current/billing/granular-usage";

/** Usage as JSON (docs/platform.md, Records) and as CSV (CSV export); both need organization:read. */
export function billing(world: World): Route[] {
  const route = (format: Format, answer: (usage: Usage, query: UsageQuery) => Answer): Route => ({
    method: "GET",
    path: format === "json" ? PATH : `${PATH}/export`,
    needs: "organization:read",
    handle({ query: given, fault }) {
      const query = fromQuery(given, world.settings, world.now());
      return answer(answered(world, query, format, fault), query);
    },
  });
  return [
    route("json", (usage, query) => json(toWireUsage(usage, query, world.settings))),
    route("csv", (usage, query) => {
      const { csvNewline } = world.settings;
      return {
        status: 200,
        type: "text/csv; charset=utf-8",
        headers: { "content-disposition": 'attachment; filename="granular-usage.csv"' },
        body: toCsv(usage, query, csvNewline),
      };
    }),
  ];
}
