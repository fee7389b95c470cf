import { toCsv } from "../billing/csv.ts";
import { fromQuery, type UsageQuery } from "../billing/query.ts";
import { measures, toWireUsage } from "../billing/record.ts";
import { type Usage, usageOf } from "../billing/usage.ts";
import { type Exchange, json, type Route } from "../http/route.ts";
import type { World } from "../world.ts";

const PATH = "/api/v1/orgs/current/billing/granular-usage";

/** Usage as JSON (docs/platform.md, Records) and as CSV (CSV export); both need organization:read. */
export function billing(world: World): Route[] {
  const ask = ({ query: given, fault }: Exchange): { query: UsageQuery; usage: Usage } => {
    const query = fromQuery(given, world.settings, world.now());
    const wrong = fault?.kind === "stride" ? (fault.stride ?? "coarser") : null;
    return { query, usage: usageOf(world, query, wrong) };
  };
  return [
    {
      method: "GET",
      path: PATH,
      needs: "organization:read",
      handle(exchange) {
        const { query, usage } = ask(exchange);
        return json(toWireUsage(usage, query, world.settings.contract));
      },
    },
    {
      method: "GET",
      path: `${PATH}/export`,
      needs: "organization:read",
      handle(exchange) {
        const { query, usage } = ask(exchange);
        const { contract, csvNewline } = world.settings;
        return {
          status: 200,
          type: "text/csv; charset=utf-8",
          headers: { "content-disposition": 'attachment; filename="granular-usage.csv"' },
          body: toCsv(usage, query, measures(contract, query.kind), csvNewline),
        };
      },
    },
  ];
}
