import type { Route } from "../../domain/bill/alert-route.ts";
import { counted } from "../../printable.ts";
import { type Message, textOf } from "./message.ts";
import { DeliveryError, type Sending, unanswered } from "./receiver.ts";

/** Tries of a message while its time lasts. */
const TRIES = 3;
const PAUSE_MS = 500;
/** Slack takes 50 blocks of 3,000 characters. */
const SLACK = { blocks: 50, characters: 2_900 };
/** More of an answer is not read. */
const LONGEST_ANSWER = 65_536;

/** Sends a message, up to three times where it may help. Returns what the receiver answered. Error: `route_failed`. */
export async function deliver(message: Message, sending: Sending): Promise<string> {
  const { deadline, signal, clock } = sending;
  const ends = signal === undefined ? deadline : AbortSignal.any([deadline, signal]);
  let isCertain = true;
  for (let attempt = 1; ; attempt++) {
    try {
      return await send(message, sending, ends);
    } catch (error) {
      if (!(error instanceof DeliveryError)) throw error;
      // One that nobody knows of stays unknown, whatever the next one says.
      isCertain &&= error.isCertain;
      const failed = isCertain ? error : unknown(sending.route, error);
      if (!error.retryable || attempt === TRIES || ends.aborted) throw failed;
      await clock.wait(Math.random() * PAUSE_MS * 2 ** attempt, ends).catch(() => {
        throw failed;
      });
    }
  }
}

function unknown(route: Route, { problem, retryable }: DeliveryError): DeliveryError {
  return new DeliveryError({ route, problem, retryable, isCertain: false });
}

function send(message: Message, sending: Sending, ends: AbortSignal): Promise<string> {
  const { receiver } = sending;
  if (receiver.type === "webhook") {
    const body = { text: escaped(textOf(message)), alerts: message.alerts };
    return post(receiver.url, body, sending, ends, undefined);
  }
  if (receiver.type === "slack") return post(receiver.url, slackBody(message), sending, ends, slackFault);
  if (receiver.type === "pagerduty")
    return post(receiver.url, pagerDutyEvent(message, receiver.key), sending, ends, pagerDutyFault);
  return import("./mail.ts").then(({ sendMail }) => sendMail(message, receiver, sending, ends));
}

/** What Slack takes for a command in a text, such as one that calls everybody. */
const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

function escaped(text: string): string {
  return text.replace(/[&<>]/g, (sign) => ENTITIES[sign] ?? sign);
}

function slackBody(message: Message) {
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
function pagerDutyEvent({ alerts: [alert], subject }: Message, key: string) {
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

/** Slack says `ok`, or what is wrong, also with status 200. */
function slackFault(text: string): string | undefined {
  return text.trim() === "ok" || jsonOf(text)?.ok === true ? undefined : wordOf(jsonOf(text)?.error ?? text);
}

function pagerDutyFault(text: string): string | undefined {
  const { status } = jsonOf(text) ?? {};
  return status === "success" ? undefined : wordOf(status);
}

function jsonOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}

/** A code such as `invalid_token`. Anything else might repeat the address, which is secret. */
function wordOf(text: unknown): string {
  return typeof text === "string" && /^[a-z][a-z_ ]{1,40}$/.test(text.trim())
    ? text.trim()
    : "something else than that it took the message";
}

/** `faultOf`: what an answer's body complains of, whatever its status; without it the body does not matter, nor whether it ends. */
async function post(
  url: string,
  body: object,
  { route, deadline, withinMs }: Sending,
  ends: AbortSignal,
  faultOf: ((text: string) => string | undefined) | undefined,
): Promise<string> {
  const failed = (problem: string, how: { isCertain: boolean; retryable: boolean }) =>
    new DeliveryError({ route, problem, ...how });
  // Loaded where a message is sent: `status` only reads which alerts apply.
  const { request } = await import("undici");
  let status: number;
  let text = "";
  try {
    // A limit between two bytes would hold the job for as long as the receiver sends some.
    const answer = await request(url, {
      method: "POST",
      headers: { "content-type": "application/json", "user-agent": "usage-etl" },
      body: JSON.stringify(body),
      signal: ends,
    });
    status = answer.statusCode;
    if (faultOf === undefined || status >= 300) {
      await answer.body.dump({ limit: LONGEST_ANSWER, signal: ends }).catch(() => {});
    } else {
      for await (const chunk of answer.body) {
        text += String(chunk);
        if (text.length > LONGEST_ANSWER) break;
      }
    }
  } catch (error) {
    // A webhook's address is its secret, so neither it nor the cause's message is shown.
    throw unanswered(route, error, { deadline, withinMs });
  }
  const answered = `answered ${status}`;
  if (status >= 300 && status < 400)
    throw failed(`redirects (${status}), and no redirect is followed`, { isCertain: true, retryable: false });
  if (status < 200 || status >= 300)
    throw failed(answered, { isCertain: true, retryable: status === 429 || status >= 500 });
  const fault = faultOf?.(text);
  if (fault !== undefined) throw failed(`${answered} with ${fault}`, { isCertain: true, retryable: false });
  return answered;
}
