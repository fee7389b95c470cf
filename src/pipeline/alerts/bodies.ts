import { counted } from "../../printable.ts";
import { type Message, textOf } from "./message.ts";

/** What receivers of JSON are sent: a message in the form that each type takes. */

/** Slack takes 50 blocks of 3,000 characters. */
const SLACK = { blocks: 50, characters: 2_900 };
/** What Slack takes for a command in a text, such as one that calls everybody. */
const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

function escaped(text: string): string {
  return text.replace(/[&<>]/g, (sign) => ENTITIES[sign] ?? sign);
}

export function webhookBody(message: Message) {
  return { text: escaped(textOf(message)), alerts: message.alerts };
}

export function slackBody(message: Message) {
  const lines = message.lines.map(({ text, link }) => {
    const end = link === null ? "" : ` <${link}|Show it>`;
    return fitting(text, SLACK.characters - end.length) + end;
  });
  const blocks: string[][] = [];
  for (const line of lines) {
    const last = blocks.at(-1);
    const length = last === undefined ? 0 : last.join("\n").length + 1;
    if (last === undefined || length + line.length > SLACK.characters) blocks.push([line]);
    else last.push(line);
  }
  const left = blocks.slice(SLACK.blocks - 1).flat();
  const shown =
    blocks.length <= SLACK.blocks
      ? blocks
      : [
          ...blocks.slice(0, SLACK.blocks - 1),
          [`And ${counted(left.length, "line")} more: \`usage-etl alerts\``],
        ];
  return {
    text: escaped(message.subject),
    blocks: shown.map((block) => ({ type: "section", text: { type: "mrkdwn", text: block.join("\n") } })),
  };
}

/** A text escaped, with no more characters than that; an entity counts whole. */
function fitting(text: string, most: number): string {
  const whole = escaped(text);
  if (whole.length <= most) return whole;
  let cut = "";
  for (const sign of text) {
    const next = cut + escaped(sign);
    if (next.length >= most) break;
    cut = next;
  }
  return `${cut}…`;
}

/** An event is about one incident. */
export function pagerDutyEvent({ alerts: [alert], subject }: Message, key: string) {
  if (alert === undefined) throw new Error("a message without an alert is no event");
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
