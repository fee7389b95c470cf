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
    if (incident.length < LEAST_ID || found === undefined || second !== undefined) {
      const open = `${found === undefined ? "No" : "More than one"} open incident has an id that begins with ${JSON.stringify(incident)}.`;
      throw new UsageError({
        code: "incident_unknown",
        message: incident.length < LEAST_ID ? `An id takes ${LEAST_ID} characters or more.` : open,
        next: "`usage-etl alerts` lists those that are open, with their ids.",
      });
    }
    const sourceId = await storeAcknowledgement(db, { ...found, by: by.name });
    const detail = `incident ${found.incident}: ${found.message}`;
    await recordAction(db, by, { sourceId, action: "alerts.acknowledge", detail });
    return found;
  });
}
