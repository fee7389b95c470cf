import { readdirSync, readFileSync } from "node:fs";
import { expandDimensions } from "../../src/store/db/dimensions.ts";

const SQL = new URL("../../sql/reporting/", import.meta.url);

/** The views that a newcomer needs, as sql/reporting places them. */
const CORE_VIEWS: ReadonlySet<string> = new Set(
  readdirSync(SQL).flatMap((file) =>
    [...expandDimensions(readFileSync(new URL(file, SQL), "utf8")).matchAll(/VIEW reporting\.(\w+)/g)].map(
      ([, name]) => name ?? "",
    ),
  ),
);

export function inSchema(view: string): string {
  return `${CORE_VIEWS.has(view) ? "reporting" : "reporting_detail"}.${view}`;
}
