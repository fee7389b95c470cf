import type { Connections } from "../../core/base/dispatcher.ts";
import { UsageError } from "../../core/base/errors.ts";
import { loadOptional } from "../../core/base/optional.ts";
import { DeliveryError, type Receiver, type Sending, unanswered } from "../owners/receiver.ts";
import { googleChatBody, pagerDutyEvent, slackBody, teamsBody, webhookBody } from "./bodies.ts";
import type { Message } from "./message.ts";

const TRIES = 3;
const PAUSE_MS = 500;
/** An endless response must not fill the memory. */
const LONGEST_RESPONSE = 65_536;

/** Tries up to three times until the deadline. Returns the receiver's response. Error: `route_failed`. */
export async function deliver(message: Message, sending: Sending): Promise<string> {
  const { deadline, signal, clock } = sending;
  const ends = signal === undefined ? deadline : AbortSignal.any([deadline, signal]);
  let isCertain = true;
  for (let attempt = 1; ; attempt++) {
    try {
      return await send(message, sending, ends);
    } catch (error) {
      if (!(error instanceof DeliveryError)) throw error;
      // If an earlier try may have arrived, a later refusal does not change that.
      isCertain &&= error.isCertain;
      error.isCertain = isCertain;
      if (!error.retryable || attempt === TRIES || ends.aborted) throw error;
      await clock.wait(Math.random() * PAUSE_MS * 2 ** attempt, ends).catch(() => {
        throw error;
      });
    }
  }
}

async function send(message: Message, sending: Sending, ends: AbortSignal): Promise<string> {
  const { receiver } = sending;
  if (receiver.type !== "email") return post(message, receiver, sending, ends);
  const problem = await whyNoMail();
  if (problem !== undefined)
    throw new DeliveryError({ route: sending.route, problem, isCertain: true, retryable: false });
  const { sendMail } = await import("./mail.ts");
  return sendMail(message, receiver, sending, ends);
}

/** Undefined: the optional package for mail is installed. */
export function whyNoMail(): Promise<string | undefined> {
  return loadOptional(() => import("./mail.ts")).then(
    () => undefined,
    (error: Error) => `cannot send mail from here: ${error.message.replace(/\.$/, "")}`,
  );
}

type WebReceiver = Exclude<Receiver, { type: "email" }>;

function bodyOf(message: Message, receiver: WebReceiver): object {
  switch (receiver.type) {
    case "pagerduty":
      return pagerDutyEvent(message, receiver.key);
    case "slack":
      return slackBody(message);
    case "google_chat":
      return googleChatBody(message);
    case "teams":
      return teamsBody(message);
    case "webhook":
      return webhookBody(message);
  }
}

/** Slack and PagerDuty may refuse a message with status 200. For other types, the status alone decides. */
const IS_TAKEN: Partial<Record<WebReceiver["type"], RegExp>> = {
  slack: /^\s*ok\s*$|"ok"\s*:\s*true/,
  pagerduty: /"status"\s*:\s*"success"/,
};

function authorization(receiver: WebReceiver): Record<string, string> {
  if (receiver.type === "pagerduty" || receiver.login === undefined) return {};
  const { user, pass } = receiver.login;
  return { authorization: `Basic ${Buffer.from(`${user}:${pass}`).toString("base64")}` };
}

async function post(
  message: Message,
  receiver: WebReceiver,
  sending: Sending,
  ends: AbortSignal,
): Promise<string> {
  // Loaded here, because `status` imports this module and sends nothing.
  const { openConnections } = await import("../../core/base/dispatcher.ts");
  const isTaken = IS_TAKEN[receiver.type];
  const { origin, pathname, search } = new URL(receiver.url);
  let connections: Connections | undefined;
  let status: number;
  let text = "";
  try {
    connections = openConnections(new URL(origin), { connections: 1, connectMs: sending.withinMs });
    const response = await connections.dispatcher.request({
      origin,
      path: pathname + search,
      method: "POST",
      headers: { "content-type": "application/json", "user-agent": "usage-etl", ...authorization(receiver) },
      body: JSON.stringify(bodyOf(message, receiver)),
      // A limit between two bytes would let a slow receiver block the job.
      signal: ends,
    });
    status = response.statusCode;
    if (isTaken === undefined || status >= 300) {
      await response.body.dump({ limit: LONGEST_RESPONSE, signal: ends }).catch(() => {});
    } else {
      for await (const chunk of response.body) {
        text += String(chunk);
        if (text.length > LONGEST_RESPONSE) break;
      }
    }
  } catch (error) {
    if (error instanceof UsageError)
      throw new DeliveryError({
        route: sending.route,
        problem: `cannot be reached: ${error.message.slice(0, -1)}`,
        isCertain: true,
        retryable: false,
      });
    // The address is secret, and the cause's message may contain it.
    throw unanswered(error, sending, connections?.proxy);
  } finally {
    void connections?.dispatcher.destroy();
  }
  // Inside a TLS tunnel, only the receiver responds.
  const { proxy } = connections;
  const through =
    proxy === undefined || origin.startsWith("https:") ? "" : ` through the proxy ${proxy.shown}`;
  const refuse = (problem: string, retryable = false) =>
    new DeliveryError({ route: sending.route, problem, isCertain: true, retryable });
  if (status >= 300 && status < 400) throw refuse(`redirects (${status}), and no redirect is followed`);
  if (status < 200 || status >= 300)
    throw refuse(`responded with ${status}${through}`, status === 429 || status >= 500);
  if (isTaken?.test(text) === false) throw refuse(`responded with ${status}, but did not take the message`);
  return `responded with ${status}`;
}
