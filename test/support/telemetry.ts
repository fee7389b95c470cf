import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import { createRequire } from "node:module";

/**
 * A small tracing SDK for `node --import`; of OpenTelemetry's packages only the API is installed. Every ended span is sent to OTEL_EXPORTER_OTLP_ENDPOINT as OTLP over HTTP in JSON.
 */

// The copy of the API that bullmq-otel loads: both share a global that depends on the version.
const require = createRequire(import.meta.url);
const api = createRequire(require.resolve("bullmq-otel"))("@opentelemetry/api");

interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
}
type Attributes = Record<string, unknown>;

const endpoint = `${process.env.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces`;

class Span {
  readonly #context: SpanContext;
  readonly #attributes: Attributes = {};
  readonly #sent: Record<string, unknown>;
  #error: string | undefined;

  constructor(sent: Record<string, unknown>, parent: SpanContext | undefined) {
    this.#context = {
      traceId: parent?.traceId ?? randomBytes(16).toString("hex"),
      spanId: randomBytes(8).toString("hex"),
      traceFlags: 1,
    };
    this.#sent = { ...sent, parentSpanId: parent?.spanId ?? "" };
  }

  spanContext = () => this.#context;
  isRecording = () => true;
  setAttribute = (key: string, value: unknown) => this.setAttributes({ [key]: value });
  setAttributes(attributes: Attributes) {
    Object.assign(this.#attributes, attributes);
    return this;
  }
  addEvent = () => this;
  recordException(error: Error) {
    this.#error = error.message;
  }
  end() {
    const { traceId, spanId } = this.#context;
    const attributes = Object.entries(this.#attributes).map(([key, value]) => ({
      key,
      value: { stringValue: String(value) },
    }));
    const span = {
      ...this.#sent,
      traceId,
      spanId,
      attributes,
      status: this.#error === undefined ? {} : { code: 2, message: this.#error },
    };
    const body = JSON.stringify({ resourceSpans: [{ scopeSpans: [{ spans: [span] }] }] });
    // The span is lost if the receiver ended before this process.
    fetch(endpoint, { method: "POST", headers: { "content-type": "application/json" }, body }).catch(
      () => {},
    );
  }
}

const contexts = new AsyncLocalStorage<object>();
const active = () => contexts.getStore() ?? api.ROOT_CONTEXT;

api.context.setGlobalContextManager({
  active,
  with: <T>(context: object, work: (...given: unknown[]) => T, self?: unknown, ...given: unknown[]) =>
    contexts.run(context, () => work.apply(self, given)),
  bind: (_: object, target: unknown) => target,
  enable() {},
  disable() {},
});
api.trace.setGlobalTracerProvider({
  getTracer: (scope: string) => ({
    startSpan: (name: string, { kind = 0 } = {}, context = active()) =>
      new Span({ name, kind: kind + 1, scope }, api.trace.getSpanContext(context)),
  }),
});
// W3C Trace Context, level 1.
api.propagation.setGlobalPropagator({
  fields: () => ["traceparent"],
  inject(context: object, carrier: Record<string, string>) {
    const span: SpanContext | undefined = api.trace.getSpanContext(context);
    if (span !== undefined) carrier.traceparent = `00-${span.traceId}-${span.spanId}-01`;
  },
  extract(context: object, carrier: Record<string, string>) {
    const [, traceId, spanId] = (carrier.traceparent ?? "").split("-");
    if (traceId === undefined || spanId === undefined) return context;
    return api.trace.setSpanContext(context, { traceId, spanId, traceFlags: 1, isRemote: true });
  },
});
