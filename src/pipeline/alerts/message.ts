import type { AlertKind, Severity } from "../../domain/bill/alert-route.ts";
import { counted } from "../../printable.ts";
import { type Condition, factOf, idOf, pageOf } from "./conditions.ts";

/** One line of a message. It holds counts, names and commands, no address of a person and no whole key. */
export interface Alert {
  /** The same whenever the same is sent again: a receiver that was told twice can tell. */
  readonly id: string;
  /** The same from the beginning of an incident to its end. */
  readonly incident: string;
  readonly source: string;
  readonly alert: AlertKind | "test";
  readonly owner: string | null;
  readonly severity: Severity;
  readonly state: "firing" | "cleared";
  readonly count: number;
  readonly message: string;
  /** The page that answers it; null where nobody said where the pages are. */
  readonly link: string | null;
}

interface Line {
  readonly text: string;
  readonly link: string | null;
}

/** What is sent to a receiver at once. */
export interface Message {
  /** As that of an alert. */
  readonly id: string;
  readonly subject: string;
  readonly lines: readonly Line[];
  readonly alerts: readonly Alert[];
}

/** `since`: when this incident began to be told, epoch milliseconds. */
export function alertOf(
  { kind, owner, severity, isFiring, count, newest, message, over }: Condition,
  { source, since, webUrl }: { source: string; since: number; webUrl: string | undefined },
): Alert {
  const link = webUrl === undefined ? null : `${webUrl.replace(/\/+$/, "")}${pageOf(kind, source) ?? "/"}`;
  const said = isFiring ? (link === null ? message : factOf({ message })) : `${over}.`;
  return {
    id: idOf(source, kind, owner, since, ...(isFiring ? [count, newest] : ["over"])),
    incident: idOf(source, kind, owner),
    source,
    alert: kind,
    owner,
    severity,
    count,
    link,
    message: said,
    state: isFiring ? "firing" : "cleared",
  };
}

export function messageOf(source: string, alerts: readonly Alert[]): Message {
  const firing = alerts.filter(({ state }) => state === "firing").length;
  const over = alerts.length - firing;
  const counts = [
    ...(firing > 0 ? [counted(firing, "alert")] : []),
    ...(over > 0 ? [`${over} ${over === 1 ? "is" : "are"} over`] : []),
  ];
  return {
    id: idOf(alerts.map(({ id }) => id)),
    subject: `usage-etl ${source}: ${counts.join(", ")}`,
    lines: alerts.map(({ state, message, link }) => ({
      text: `${state === "firing" ? "ALERT" : "OK"} usage-etl ${source}: ${message}`,
      link,
    })),
    alerts,
  };
}

/** A message that nobody has to act on. */
export function testMessage(route: string, state: Alert["state"], now: number): Message {
  const message = `TEST of route ${route}: nothing happened. Somebody ran \`usage-etl alerts test ${route}\`.`;
  const alert = {
    id: idOf("test", route, now, state),
    incident: idOf("test", route, now),
    source: "test",
    ...({ alert: "test", owner: null, severity: "warning", state, count: 0, message, link: null } as const),
  };
  return {
    id: alert.id,
    subject: `TEST of usage-etl: route ${route}`,
    lines: [{ text: message, link: null }],
    alerts: [alert],
  };
}

export function textOf({ lines }: Pick<Message, "lines">): string {
  return lines.map(({ text, link }) => (link === null ? text : `${text} ${link}`)).join("\n");
}
