import type { Route } from "../../domain/bill/alert-route.ts";
import { pagerDutyEvent, slackBody, webhookBody } from "./bodies.ts";
import type { Message } from "./message.ts";
import { DeliveryError, type Sending, unanswered } from "./receiver.ts";

/** Tries of a message while its time lasts. */
const TRIES = 3;
const PAUSE_MS = 500;
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
  if (receiver.type === "webhook") return post(receiver.url, webhookBody(message), sending, ends, undefined);
  if (receiver.type === "slack") return post(receiver.url, slackBody(message), sending, ends, slackFault);
  if (receiver.type === "pagerduty")
    return post(receiver.url, pagerDutyEvent(message, receiver.key), sending, ends, pagerDutyFault);
  return import("./mail.ts").then(({ sendMail }) => sendMail(message, receiver, sending, ends));
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
