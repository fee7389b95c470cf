import { AsyncLocalStorage } from "node:async_hooks";
import { randomBytes } from "node:crypto";
import { appendFileSync } from "node:fs";
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const api = createRequire(require.resolve("bullmq-otel"))("@opentelemetry/api");

interface SpanContext {
  readonly traceId: string;
  readonly spanId: string;
  readonly traceFlags: number;
}

export interface EndedSpan extends Pick<SpanContext, "traceId" | "spanId"> {
  readonly parentSpanId: string | undefined;
  readonly name: string;
  readonly kind: number;
  readonly scope: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly error: string | undefined;
}

function startSpan(given: Pick<EndedSpan, "name" | "kind" | "scope">, parent: SpanContext | undefined) {
  const traceId = parent?.traceId ?? randomBytes(16).toString("hex");
  const spanId = randomBytes(8).toString("hex");
  const attributes: Record<string, unknown> = {};
  let error: string | undefined;
  const span = {
    spanContext: (): SpanContext => ({ traceId, spanId, traceFlags: 1 }),
    isRecording: () => true,
    setAttribute: (key: string, value: unknown) => span.setAttributes({ [key]: value }),
    setAttributes: (more: Record<string, unknown>): object => {
      Object.assign(attributes, more);
      return span;
    },
    addEvent: (): object => span,
    recordException: ({ message }: Error) => {
      error = message;
    },
    end: () => {
      const ended: EndedSpan = { ...given, traceId, spanId, parentSpanId: parent?.spanId, attributes, error };
      appendFileSync(process.env.SPANS_FILE ?? "", `${JSON.stringify(ended)}\n`);
    },
  };
  return span;
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
      startSpan({ name, kind, scope }, api.trace.getSpanContext(context)),
  }),
});
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
