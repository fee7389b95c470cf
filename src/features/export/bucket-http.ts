import type { S3ClientConfig } from "@aws-sdk/client-s3";
import { type Connections, openConnections } from "../../core/base/dispatcher.ts";
import { proxyRefusal } from "../../core/base/proxy.ts";

const LIMITS = { connections: 50, connectMs: 10_000 };
const RESPONSE_WITHIN_MS = 120_000;

interface BucketRequest {
  readonly protocol: string;
  readonly hostname: string;
  readonly port?: number;
  readonly method: string;
  readonly path: string;
  readonly query?: Readonly<Record<string, string | readonly string[] | null>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: Buffer;
}

/** The AWS client's own handler does not support a proxy. */
export function bucketHttp(): NonNullable<S3ClientConfig["requestHandler"]> {
  const opened = new Map<string, Connections>();
  const connectionsOf = (origin: string): Connections => {
    const connections = opened.get(origin) ?? openConnections(new URL(origin), LIMITS);
    opened.set(origin, connections);
    return connections;
  };
  return {
    metadata: { handlerProtocol: "http/1.1" },
    async handle(request: BucketRequest, { abortSignal }: { abortSignal?: AbortSignal } = {}) {
      const { protocol, hostname, port, method, headers, body } = request;
      const origin = `${protocol}//${hostname}${port === undefined ? "" : `:${port}`}`;
      const { dispatcher, proxy } = connectionsOf(origin);
      try {
        const response = await dispatcher.request({
          origin,
          path: pathOf(request),
          method,
          headers,
          body: body ?? null,
          signal: abortSignal ?? null,
          headersTimeout: RESPONSE_WITHIN_MS,
          bodyTimeout: RESPONSE_WITHIN_MS,
        });
        const single = Object.entries(response.headers).map(([name, value]) => [
          name,
          [value].flat().join(", "),
        ]);
        const { statusCode } = response;
        return { response: { statusCode, headers: Object.fromEntries(single), body: response.body } };
      } catch (cause) {
        const refusal = proxy === undefined ? undefined : proxyRefusal(cause);
        const why = refusal === undefined ? (cause as Error).message : `it refuses with ${refusal}`;
        const through = proxy === undefined ? "" : `through the proxy ${proxy.shown}: `;
        // The AWS client retries only errors with this property.
        throw Object.assign(new Error(through + why, { cause }), { $retryable: {} });
      }
    },
    destroy() {
      for (const { dispatcher } of opened.values()) void dispatcher.destroy();
      opened.clear();
    },
    updateHttpClientConfig() {},
    httpHandlerConfigs: () => ({}),
  };
}

/** A signature needs exactly this encoding. */
function pathOf({ path, query = {} }: BucketRequest): string {
  const encoded = (text: string) =>
    encodeURIComponent(text).replace(
      /[!'()*]/g,
      (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`,
    );
  const pairs = Object.entries(query).flatMap(([name, value]) =>
    [value]
      .flat()
      .map((one) => (typeof one === "string" ? `${encoded(name)}=${encoded(one)}` : encoded(name))),
  );
  return pairs.length === 0 ? path : `${path}?${pairs.join("&")}`;
}
