import { createServer, request as httpRequest, type IncomingMessage } from "node:http";
import { createServer as createTls } from "node:https";
import { connect, type Socket } from "node:net";
import { onTestFinished, vi } from "vitest";
import { listenInTest } from "./listen.ts";

type Manner = "well" | "silent" | "stalls" | number;

export interface ForwardProxy {
  readonly url: string;
  manner: Manner;
  readonly requests: string[];
  readonly connections: () => number;
  readonly bytes: () => string;
}

interface Options {
  /** Ports of this machine, by host and port of the request. Nobody else can resolve these hosts. */
  readonly hosts: Readonly<Record<string, number>>;
  readonly login?: string;
  readonly tls?: { readonly cert: Buffer; readonly key: Buffer };
}

/** A proxy as in a company: it tunnels by CONNECT, and passes plain HTTP on. */
export async function startForwardProxy({ hosts, login, tls }: Options): Promise<ForwardProxy> {
  const sent: string[] = [];
  const statusOf = (request: IncomingMessage, port: number | undefined): number | undefined => {
    proxy.requests.push(`${request.method} ${request.url}`);
    sent.push(request.rawHeaders.join(" "));
    const isKnown =
      login === undefined ||
      request.headers["proxy-authorization"] === `Basic ${Buffer.from(login).toString("base64")}`;
    if (!isKnown) return 407;
    if (typeof proxy.manner === "number") return proxy.manner;
    return port === undefined ? 502 : undefined;
  };
  const server = tls === undefined ? createServer() : createTls(tls);
  let connections = 0;
  server.on("connection", () => connections++);
  server.on("request", (request, response) => {
    const { host, pathname, search } = new URL(request.url ?? "");
    const port = hosts[host.includes(":") ? host : `${host}:80`];
    const status = statusOf(request, port);
    if (proxy.manner === "silent") return;
    if (status !== undefined) return void response.writeHead(status).end(`refused by the proxy ${login}`);
    const { "proxy-authorization": _, ...headers } = request.headers;
    const onward = httpRequest(
      { host: "127.0.0.1", port, method: request.method, path: pathname + search, headers },
      (received) => {
        response.writeHead(received.statusCode ?? 502, received.headers);
        received.pipe(response);
      },
    );
    request.on("data", (data) => sent.push(String(data))).pipe(onward);
    onward.on("error", () => response.destroy());
  });
  server.on("connect", (request: IncomingMessage, client: Socket, head: Buffer) => {
    const port = hosts[request.url ?? ""];
    const status = statusOf(request, port);
    client.on("error", () => {});
    if (proxy.manner === "silent") return;
    if (proxy.manner === "stalls") return void client.write("HTTP/1.1 200 Connection established\r\n\r\n");
    if (status !== undefined || port === undefined)
      return void client.end(`HTTP/1.1 ${status} Refused\r\ncontent-length: 0\r\n\r\n`);
    const upstream = connect(port, "127.0.0.1", () => {
      client.write("HTTP/1.1 200 Connection established\r\n\r\n");
      upstream.write(head);
      client.on("data", (data) => sent.push(data.toString("latin1"))).pipe(upstream);
      upstream.pipe(client);
    });
    upstream.on("error", () => client.destroy());
    client.on("close", () => upstream.destroy());
    upstream.on("close", () => client.destroy());
  });
  const proxy: ForwardProxy = {
    url: `${tls === undefined ? "http://127.0.0.1" : "https://localhost"}:${await listenInTest(server)}`,
    manner: "well",
    requests: [],
    connections: () => connections,
    bytes: () => sent.join("\n"),
  };
  return proxy;
}

/** Variables of proxies until the test ends; others of them are not set. */
export function setProxies(variables: Readonly<Record<string, string>>): void {
  onTestFinished(() => void vi.unstubAllEnvs());
  for (const name of ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"])
    for (const one of [name, name.toLowerCase()]) vi.stubEnv(one, variables[one]);
}
