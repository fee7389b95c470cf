import type { Config } from "../../config/config.ts";
import { UsageError } from "../../errors.ts";
import { storeAcknowledgement } from "../../store/activity/acknowledgements.ts";
import type { Store } from "../../store/db/database.ts";
import { type Actor, recordAction } from "../../store/work/operator-actions.ts";
import { conditionSettingsOf, type FiringAlert, firingAlerts } from "./conditions.ts";

/** As many characters of an incident's id name it. */
const LEAST_ID = 4;

/**
 * Marks an incident as somebody's. `incident`: its id, or how that begins. The mark goes when the incident grows or is over. Error:
 * `incident_unknown`.
 */
export async function acknowledge(
  store: Store,
  config: Pick<Config, "sources" | "syncEveryMs">,
  { incident, by }: { readonly incident: string; readonly by: Actor },
): Promise<FiringAlert & { readonly source: string }> {
  return store.transaction(async ({ db }) => {
    const firing = [...(await firingAlerts(db, conditionSettingsOf(config)))].flatMap(([source, alerts]) =>
      alerts.map((alert) => ({ ...alert, source })),
    );
    const [found, second] = firing.filter((one) => one.incident.startsWith(incident));
    if (found === undefined || second !== undefined || incident.length < LEAST_ID)
      throw new UsageError({
        code: "incident_unknown",
        message: `${found === undefined ? "No incident" : "More than one incident"} that is open has the id ${JSON.stringify(incident)}.`,
        next: "`usage-etl alerts` lists those that are open, with their ids.",
      });
    const sourceId = await storeAcknowledgement(db, { ...found, by: by.name });
    const detail = `incident ${found.incident}: ${found.message}`;
    await recordAction(db, by, { sourceId, action: "alerts.acknowledge", detail });
    return found;
  });
}
