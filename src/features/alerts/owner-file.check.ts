import type { Config } from "../../core/base/config.ts";
import { readGiven } from "../../core/base/given-file.ts";
import { counted, linesShown } from "../../core/base/printable.ts";
import type { Store } from "../../core/store/db/database.ts";
import { type Notes, noteProxy, problemOf } from "../../terminal/check.ts";
import { routesOfNobody } from "../owners/alert-routes.store.ts";
import { appliedOwners, idleBudgets, idleRules } from "../owners/owners.store.ts";
import { receiverOf } from "../owners/receiver.ts";
import { reportRoutes } from "./report.ts";

export async function checkOwners(config: Config, store: Store | undefined, notes: Notes): Promise<void> {
  if (store === undefined) return;
  const { db } = store;
  const applied = await appliedOwners(db);
  if (applied !== undefined) {
    const idle = await idleRules(db);
    const decide = idle.length === 1 ? "decides" : "decide";
    const of =
      idle.length === 0
        ? ""
        : `; ${idle.length.toLocaleString("en-US")} ${decide} nothing now (${linesShown(idle)})`;
    const budgets = await idleBudgets(db);
    const ofBudgets =
      budgets.length === 0
        ? ""
        : `; ${counted(budgets.length, "budget")} ${budgets.length === 1 ? "counts" : "count"} nothing now (${linesShown(budgets)})`;
    const when = applied.appliedAt.toISOString().slice(0, 10);
    notes.pass(
      "owners",
      `${counted(applied.rules, "rule")} of an owner file, applied on ${when}${of}${ofBudgets}`,
    );
  }
  await checkRoutes(db, config, notes);
  const { ownersFile } = config;
  if (ownersFile === undefined) return;
  try {
    const content = await readGiven(ownersFile, "an owner file in YAML and UTF-8");
    if (content === applied?.content) return;
    notes.warn("owners", {
      code: "owners_differ",
      message: `${ownersFile} ${applied === undefined ? "was never applied" : "is not the owner file that was applied"}.`,
      next: "Run `usage-etl owners plan` to see what the file would change, and `usage-etl owners apply` to apply it.",
    });
  } catch (error) {
    notes.warn("owners", problemOf(error));
  }
}

async function checkRoutes(db: Store["db"], config: Config, notes: Notes): Promise<void> {
  for (const route of await reportRoutes(db, config)) {
    const receiver = route.missing === null ? receiverOf(route, config.routeSecrets) : undefined;
    if (receiver !== undefined && receiver.type !== "email") noteProxy(new URL(receiver.url), notes);
    const failed = route.states.find(({ failures }) => failures > 0);
    if (route.missing === null && failed === undefined) continue;
    const problem = route.missing ?? `the last message did not arrive: it ${failed?.problem}`;
    notes.warn("routes", {
      code: "route_failed",
      message: `Route ${route.name}: ${problem}.`,
      next: `Check ${route.setting}. \`usage-etl alerts test ${route.name}\` sends a message to it.`,
    });
  }
  for (const { line, route, owners } of await routesOfNobody(db)) {
    notes.warn("routes", {
      code: "route_idle",
      message: `Route ${route} (line ${line}) is for ${owners.join(" and ")}, but no rule of the owner file in force assigns usage to such an owner.`,
      next: "Run `usage-etl owners export` to see the file in force, and correct the route or the rules.",
    });
  }
}
