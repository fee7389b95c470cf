import { createServer } from "node:http";
import { type AddressInfo, createServer as createPlain, type Server, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { createServer as createTls, TLSSocket, type TlsOptions } from "node:tls";

export type Manner = "well" | "refuses" | "redirects" | "lies" | "cuts" | "holds";

export type OnMessage = (message: ReceivedMessage) => Manner;

export interface ReceivedMessage {
  readonly path: string;
  readonly body: string;
  readonly login?: string | undefined;
  readonly hello?: string;
}

interface Receivers {
  readonly webUrl: string;
  readonly smtpPort: number;
  close(): Promise<void>;
}

export async function openReceivers(
  onMessage: OnMessage,
  { ports = [0, 0], tls }: { ports?: readonly [web: number, smtp: number]; tls?: MailTls } = {},
): Promise<Receivers> {
  const [web, smtp] = [webServer(onMessage), mailServer(onMessage, tls)];
  const [webPort, smtpPort] = await Promise.all([listen(web, ports[0]), listen(smtp.server, ports[1])]);
  return {
    webUrl: `http://127.0.0.1:${webPort}`,
    smtpPort,
    close: async () => {
      const closed = [web, smtp.server].map((server) => new Promise((done) => server.close(done)));
      web.closeAllConnections();
      smtp.end();
      await Promise.all(closed);
    },
  };
}

async function listen(server: Server, port: number): Promise<number> {
  await new Promise<void>((listening, failed) => {
    server.once("error", failed).listen(port, "127.0.0.1", listening);
  });
  return (server.address() as AddressInfo).port;
}

const TAKEN: Readonly<Record<string, string>> = {
  "/slack": "ok",
  "/pagerduty": '{"status":"success","message":"Event processed"}',
};
const LIES: Readonly<Record<string, string>> = {
  "/slack": "invalid_payload",
  "/pagerduty": '{"status":"invalid event","errors":[]}',
};

function webServer(onMessage: OnMessage) {
  return createServer(async (request, response) => {
    const path = request.url ?? "";
    const body = await text(request).catch(() => undefined);
    if (body === undefined) return;
    const manner = onMessage({ path, body, login: request.headers.authorization });
    if (manner === "holds") return;
    if (manner === "cuts") return void response.destroy();
    if (manner === "refuses") return void response.writeHead(503).end();
    if (manner === "redirects") return void response.writeHead(307, { location: "/elsewhere" }).end();
    response.writeHead(path === "/pagerduty" ? 202 : 200).end((manner === "lies" ? LIES : TAKEN)[path]);
  });
}

interface MailTls extends TlsOptions {
  readonly from: "start" | "requested";
  readonly login?: string;
  readonly isBroken?: boolean;
}

function mailServer(onMessage: OnMessage, tls: MailTls | undefined) {
  const open = new Set<Socket>();
  const take = (socket: Socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    talk(socket, onMessage, tls, "220 receiver ESMTP");
  };
  const server = tls?.from === "start" ? createTls(tls, take) : createPlain(take);
  const end = () => {
    for (const socket of open) socket.destroy();
  };
  return { server, end };
}

function talk(socket: Socket, onMessage: OnMessage, tls: MailTls | undefined, greeting?: string): void {
  let [waiting, mail] = ["", undefined as string | undefined];
  let [hello, login] = ["", undefined as string | undefined];
  const isSecure = socket instanceof TLSSocket;
  const say = (line: string) => void socket.write(`${line}\r\n`);
  socket.on("error", () => {});
  if (greeting !== undefined) say(greeting);
  const onCommand = (line: string) => {
    const command = line.slice(0, 4).toUpperCase();
    if (command === "EHLO") {
      hello = line.slice(5);
      return say(
        isSecure || tls === undefined ? "250-receiver\r\n250 AUTH PLAIN" : "250-receiver\r\n250 STARTTLS",
      );
    }
    if (command === "MAIL" && tls?.login !== undefined && login === undefined)
      return say("530 5.7.0 Must issue a STARTTLS command first");
    if (command === "DATA") {
      mail = "";
      return say("354 go on");
    }
    if (command === "QUIT") return void socket.end("221 bye\r\n");
    if (command === "AUTH") {
      const given = Buffer.from(line.split(" ")[2] ?? "", "base64")
        .toString()
        .split("\0")
        .slice(1)
        .join(":");
      if (tls?.login !== undefined && given !== tls.login)
        return say(
          `535-5.7.8 No login ${line.split(" ")[2]} ${given}\r\n535 5.7.8 Ask postmaster@relay.test`,
        );
      login = given;
      return say("235 welcome");
    }
    if (command !== "STAR") return say("250 ok");
    if (tls === undefined) return say("502 not here");
    if (tls.isBroken === true) return say("454 4.7.0 TLS not available due to local problem");
    say("220 go on");
    socket.removeAllListeners("data");
    const secure = new TLSSocket(socket, { ...tls, isServer: true });
    talk(secure, onMessage, tls);
  };
  socket.on("data", (chunk) => {
    waiting += chunk.toString("utf8");
    for (let end = waiting.indexOf("\r\n"); end >= 0; end = waiting.indexOf("\r\n")) {
      const line = waiting.slice(0, end);
      waiting = waiting.slice(end + 2);
      if (mail === undefined) onCommand(line);
      else if (line !== ".") mail += `${line.replace(/^\./, "")}\n`;
      else {
        const manner = onMessage({ path: "mail", body: mail, hello, login });
        mail = undefined;
        if (manner === "cuts") socket.destroy();
        else if (manner !== "holds") say(manner === "well" ? "250 taken" : "451 not now");
      }
    }
  });
}
