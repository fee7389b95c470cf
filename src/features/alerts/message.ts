import { counted } from "../../core/base/printable.ts";
import type { AlertKind, Severity } from "../owners/alert-route.ts";
import { type Condition, factOf, idOf, pageOf } from "./conditions.ts";

/** An alert has counts, names and commands, but no e-mail address and no whole key. */
export interface Alert {
  /** A repeated message has the same id, so that a receiver can drop the copy. */
  readonly id: string;
  readonly incident: string;
  readonly source: string;
  readonly alert: AlertKind | "test";
  readonly owner: string | null;
  readonly severity: Severity;
  readonly state: "firing" | "cleared";
  readonly count: number;
  readonly message: string;
  /** Null: the pages have no address. */
  readonly link: string | null;
}

export interface Message {
  readonly id: string;
  readonly subject: string;
  readonly alerts: readonly Alert[];
}

export function alertOf(
  { kind, owner, severity, isFiring, count, newest, message, over }: Condition,
  { source, since, webUrl }: { source: string; since: number; webUrl: string | undefined },
): Alert {
  const link = webUrl === undefined ? null : `${webUrl.replace(/\/+$/, "")}${pageOf(kind, source) ?? "/"}`;
  const text = link === null ? message : factOf({ message });
  return {
    id: idOf(source, kind, owner, since, ...(isFiring ? [count, newest] : ["over"])),
    incident: idOf(source, kind, owner),
    source,
    alert: kind,
    owner,
    severity,
    count,
    link,
    message: isFiring ? text : `${over}.`,
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
    alerts,
  };
}

export function testMessage(route: string, state: Alert["state"], now: number): Message {
  const alert: Alert = {
    id: idOf("test", route, now, state),
    incident: idOf("test", route, now),
    source: "test",
    alert: "test",
    owner: null,
    severity: "warning",
    state,
    count: 0,
    message: `TEST of route ${route}: nothing happened. Somebody ran \`usage-etl alerts test ${route}\`.`,
    link: null,
  };
  return { id: alert.id, subject: `TEST of usage-etl: route ${route}`, alerts: [alert] };
}

export function lineOf({ alert, state, source, message }: Alert): string {
  if (alert === "test") return message;
  return `${state === "firing" ? "ALERT" : "OK"} usage-etl ${source}: ${message}`;
}

export function textOf({ alerts }: Pick<Message, "alerts">): string {
  return alerts
    .map((alert) => (alert.link === null ? lineOf(alert) : `${lineOf(alert)} ${alert.link}`))
    .join("\n");
}
