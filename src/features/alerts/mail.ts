import { connect } from "node:net";
import { createTransport } from "nodemailer";
import { DeliveryError, type Receiver, type Sending, unanswered } from "../owners/receiver.ts";
import { type Message, textOf } from "./message.ts";

type MailReceiver = Extract<Receiver, { type: "email" }>;

/** An error of nodemailer. */
interface Failure {
  readonly code?: string;
  readonly originalCode?: string;
  readonly responseCode?: number;
}

const PORTS: Readonly<Record<string, number>> = { "smtps:": 465, "smtp:": 587 };

/**
 * TLS from the first byte (`smtps:`) or by STARTTLS (`smtp:`), which only a server on this machine may lack. Error:
 * `route_failed`.
 */
export async function sendMail(
  message: Message,
  { server, login, from, to }: MailReceiver,
  sending: Sending,
  ends: AbortSignal,
): Promise<string> {
  const isSecure = server.protocol === "smtps:";
  const host = server.hostname.replace(/^\[|\]$/g, "");
  const isHere = /^(127(\.\d{1,3}){3}|::1)$/.test(host);
  const port = Number(server.port) || (PORTS[server.protocol] as number);
  // The limits of nodemailer are between two bytes. Only destroying the socket ends a mail in time.
  const socket = connect({ host, port });
  // An error without a listener would end the process.
  socket.on("error", () => {});
  const end = () => void socket.destroy(new Error("ended"));
  ends.addEventListener("abort", end, { once: true });
  if (ends.aborted) end();
  const transport = createTransport({
    host,
    port,
    secure: isSecure,
    requireTLS: !isSecure && !isHere,
    ignoreTLS: !isSecure && isHere,
    ...(login === undefined ? {} : { auth: { ...login } }),
    getSocket: (_, use) => {
      socket.once("connect", () => use(null, { connection: socket }));
      socket.once("error", (error) => use(error, false));
    },
    // A name in a message must not read a file or an address.
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
    const { responseCode, code, originalCode = "" } = error as Failure;
    const { route, deadline } = sending;
    if (!deadline.aborted && (code === "ETLS" || /^ERR_(SSL|TLS)_|CERT|SIGNATURE/.test(originalCode)))
      throw new DeliveryError({
        route,
        problem: "offers no TLS, or none with a valid certificate",
        isCertain: true,
        retryable: false,
      });
    if (responseCode === undefined || deadline.aborted) throw unanswered(error, sending);
    // The response may repeat a login or an address.
    const about = code === "EAUTH" ? "refuses the login" : `responded with ${responseCode}`;
    throw new DeliveryError({ route, problem: about, isCertain: true, retryable: responseCode < 500 });
  } finally {
    ends.removeEventListener("abort", end);
    transport.close();
    socket.destroy();
  }
}
