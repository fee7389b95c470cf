import { connect } from "node:net";
import { hostname } from "node:os";
import { createTransport } from "nodemailer";
import { excerptOf } from "../../core/platform/http/errors.ts";
import { hideTexts } from "../../core/platform/http/redact.ts";
import { DeliveryError, isHostName, type Receiver, type Sending, unanswered } from "../owners/receiver.ts";
import { type Message, textOf } from "./message.ts";

type MailReceiver = Extract<Receiver, { type: "email" }>;

interface Failure {
  readonly code?: string;
  readonly originalCode?: string;
  readonly responseCode?: number;
  readonly response?: string;
}

const PORTS: Readonly<Record<string, number>> = { "smtps:": 465, "smtp:": 587 };

/**
 * Uses TLS from the first byte (`smtps:`) or by STARTTLS (`smtp:`). Only a server on this machine may lack TLS or have an
 * invalid certificate. Error: `route_failed`.
 */
export async function sendMail(
  message: Message,
  { server, name, login, from, to }: MailReceiver,
  sending: Sending,
  ends: AbortSignal,
): Promise<string> {
  const isSecure = server.protocol === "smtps:";
  const host = server.hostname.replace(/^\[|\]$/g, "");
  const isHere = /^(127(\.\d{1,3}){3}|::1)$/.test(host);
  const port = Number(server.port) || (PORTS[server.protocol] as number);
  // nodemailer limits only the time between two bytes. Destroying the socket ends a mail in time.
  const socket = connect({ host, port });
  // An `error` event without a listener would end the process.
  socket.on("error", () => {});
  const end = () => void socket.destroy(new Error("ended"));
  ends.addEventListener("abort", end, { once: true });
  if (ends.aborted) end();
  const transport = createTransport({
    host,
    port,
    secure: isSecure,
    requireTLS: !isSecure && !isHere,
    opportunisticTLS: isHere,
    tls: { rejectUnauthorized: !isHere },
    name: name ?? ownName(sending.webUrl),
    ...(login === undefined ? {} : { auth: { ...login } }),
    getSocket: (_, use) => {
      socket.once("connect", () => use(null, { connection: socket }));
      socket.once("error", (error) => use(error, false));
    },
    // A name in a message must not make nodemailer read a file or an address.
    disableFileAccess: true,
    disableUrlAccess: true,
  });
  try {
    const { accepted, response } = await transport.sendMail({
      from,
      to: [...to],
      subject: message.subject,
      text: textOf(message),
      messageId: `<${message.id}@usage-etl>`,
      headers: { "auto-submitted": "auto-generated" },
    });
    // A retry would mail again to everybody who has it.
    if (accepted.length < to.length)
      return `responded with ${response.slice(0, 3)}, but refuses ${to.length - accepted.length} of ${to.length} addresses`;
    return `responded with ${response.slice(0, 3)}`;
  } catch (error) {
    const { responseCode, response = "", code, originalCode = "" } = error as Failure;
    const { route, deadline } = sending;
    const said = withoutLogin(response, login);
    if (!deadline.aborted && (code === "ETLS" || /^ERR_(SSL|TLS)_|CERT|SIGNATURE/.test(originalCode)))
      throw new DeliveryError({
        route,
        problem: `offers no TLS, or none with a valid certificate${said === "" ? "" : ` (${said})`}`,
        isCertain: true,
        retryable: false,
      });
    if (responseCode === undefined || deadline.aborted) throw unanswered(error, sending);
    const about = code === "EAUTH" ? `refuses the login: ${said}` : `responded with ${said}`;
    throw new DeliveryError({ route, problem: about, isCertain: true, retryable: responseCode < 500 });
  } finally {
    ends.removeEventListener("abort", end);
    transport.close();
    socket.destroy();
  }
}

/** nodemailer would use a name of the loopback address, which relays refuse. */
function ownName(webUrl: string | undefined): string | undefined {
  const host = webUrl === undefined ? "" : new URL(webUrl).hostname;
  return [host, hostname()].find((one) => isHostName(one) && one !== "localhost");
}

/** One line without a login or e-mail address, because everybody with access to the pages reads it. */
function withoutLogin(response: string, login: MailReceiver["login"]): string {
  const { user = "", pass = "" } = login ?? {};
  const sent = [user, pass, `\0${user}\0${pass}`];
  const secrets = [...sent, ...sent.map((text) => Buffer.from(text).toString("base64"))];
  return excerptOf(response, (text) => hideTexts(text, secrets).replace(/\S+@\S+/g, "[redacted]"));
}
