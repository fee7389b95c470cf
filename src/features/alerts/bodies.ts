import { counted } from "../../core/base/printable.ts";
import { type Alert, lineOf, type Message, textOf } from "./message.ts";

/** Slack notifies everybody if a name contains `<!channel>`, so names must be escaped. */
const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

function escaped(text: string): string {
  return text.replace(/[&<>]/g, (sign) => ENTITIES[sign] ?? sign);
}

export function webhookBody(message: Message) {
  return { text: escaped(textOf(message)), alerts: message.alerts };
}

/** Most characters, before links and entities are added. Chats split or refuse longer texts. */
const LONGEST = { line: 700, text: 3_500 };

export function slackBody({ alerts }: Message) {
  return {
    text: chatText(alerts, (line, link) => escaped(line) + (link === null ? "" : ` <${link}|Show it>`)),
  };
}

/**
 * Google Chat reads Slack's links but no entities. A name with `<users/all>` would notify everybody
 * (developers.google.com/chat).
 */
export function googleChatBody({ alerts }: Message) {
  const harmless = (line: string) => line.replaceAll("<", "‹").replaceAll(">", "›");
  return {
    text: chatText(alerts, (line, link) => harmless(line) + (link === null ? "" : ` <${link}|Show it>`)),
  };
}

/** Teams accepts only an Adaptive Card, in Markdown (learn.microsoft.com, Create and send messages). */
export function teamsBody({ alerts }: Message) {
  const plain = (line: string) => line.replace(/[\\*_~`[\]()#<>]/g, String.raw`\$&`);
  const text = chatText(alerts, (line, link) => plain(line) + (link === null ? "" : ` [Show it](${link})`));
  return {
    type: "message",
    attachments: [
      {
        contentType: "application/vnd.microsoft.card.adaptive",
        content: {
          $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
          type: "AdaptiveCard",
          version: "1.4",
          body: text.split("\n").map((line) => ({ type: "TextBlock", text: line, wrap: true })),
        },
      },
    ],
  };
}

function chatText(alerts: readonly Alert[], shown: (line: string, link: string | null) => string): string {
  const lines: string[] = [];
  let length = 0;
  for (const alert of alerts) {
    const whole = lineOf(alert);
    const cut = whole.slice(0, LONGEST.line - 1).toWellFormed();
    const line = whole.length > LONGEST.line ? `${cut}…` : whole;
    length += line.length;
    if (length > LONGEST.text) break;
    lines.push(shown(line, alert.link));
  }
  const left = alerts.length - lines.length;
  if (left > 0) lines.push(`And ${counted(left, "line")} more: \`usage-etl alerts\``);
  return lines.join("\n");
}

/** PagerDuty accepts one incident in each event. */
export function pagerDutyEvent({ alerts: [alert], subject }: Message, key: string) {
  if (alert === undefined) throw new Error("An event needs an alert.");
  const { incident, source, severity, owner, count, message, link, state } = alert;
  const event = { routing_key: key, dedup_key: `usage-etl-${incident}` };
  if (state === "cleared") return { ...event, event_action: "resolve" };
  return {
    ...event,
    event_action: "trigger",
    client: "usage-etl",
    payload: {
      severity,
      source: `usage-etl ${source}`,
      class: alert.alert,
      group: owner ?? undefined,
      summary: `${alert.alert === "test" ? subject : `usage-etl ${source}`}: ${message}`.slice(0, 1024),
      custom_details: { count, id: alert.id },
    },
    links: link === null ? [] : [{ href: link, text: "Show it" }],
  };
}
