import type { Web } from "../routes.ts";
import { addBackfillList } from "./backfill/list.ts";
import { addNewBackfill } from "./backfill/new.ts";
import { addOneBackfill } from "./backfill/one.ts";

/** Backfills: the list, a new one, and how one goes on. */
export function addBackfills(web: Web): void {
  addBackfillList(web);
  addNewBackfill(web);
  addOneBackfill(web);
}
