import { z } from "zod";
import { type Clock, systemClock } from "../../clock.ts";
import { UsageError } from "../../errors.ts";
import type { PlatformHttp } from "../http/http.ts";
import { readJson } from "../http/json-document.ts";
import { pollUntil } from "../http/poll.ts";

interface Asking {
  readonly signal?: AbortSignal | undefined;
}

/** Free-form where the platform sends another object than ResourceSpec (platform-api.md, SandboxTemplateResponse). */
type FreeForm = Readonly<Record<string, unknown>>;

export interface SandboxTemplate {
  readonly id: string | null;
  readonly name: string;
  readonly image: string;
  /** `cpu`, `memory` and `storage`, or whatever the platform limits by. */
  readonly resources: FreeForm;
  readonly volumeMounts: readonly FreeForm[];
  readonly proxyConfig: FreeForm | null;
  /** As the platform writes them. */
  readonly createdAt: string | null;
  readonly updatedAt: string | null;
}

export interface Deployment {
  readonly id: string;
  readonly latestRevisionId: string | null;
  readonly name: string | null;
}

export interface Revision {
  readonly id: string;
  readonly status: string;
}

/**
 * The control plane. Nothing that changes something is sent twice. Every method throws `PlatformError`, or the signal's
 * reason unchanged.
 */
export interface ControlPlaneClient {
  template(name: string, io?: Asking): Promise<SandboxTemplate>;
  /** Throws `UsageError` (`template_name_invalid`) for a name that the platform would refuse. */
  renameTemplate(
    change: { readonly name: string; readonly to: string },
    io?: Asking,
  ): Promise<SandboxTemplate>;
  /** What a body may hold is not in the specification: it is passed on as it is. */
  createDeployment(body: FreeForm, io?: Asking): Promise<Deployment>;
  deployment(id: string, io?: Asking): Promise<Deployment>;
  updateDeployment(
    change: { readonly id: string; readonly body: FreeForm },
    io?: Asking,
  ): Promise<Deployment>;
  revision(of: RevisionOf, io?: Asking): Promise<Revision>;
  /** The revision once it is deployed or has failed (`hasFailed`); throws `DeadlineError` where it is neither in time. */
  waitForRevision(
    of: RevisionOf,
    io: Asking & { readonly withinMs: number; readonly onStatus?: (status: string) => void },
  ): Promise<Revision>;
  close(): Promise<void>;
}

interface RevisionOf {
  readonly deploymentId: string;
  readonly revisionId: string;
}

const text = z.string().nullish();
const object = z.record(z.string(), z.unknown());
const resourceSpec = z.looseObject({
  cpu: z.string().default("500m"),
  memory: z.string().default("512Mi"),
  storage: z.string().nullish(),
});
const proxyConfig = z.looseObject({
  rules: z
    .array(
      z.looseObject({
        name: z.string(),
        match_hosts: z.array(z.string()).min(1),
        match_paths: z.array(z.string()).nullish(),
        inject_headers: z.record(z.string(), z.string()),
        enabled: z.boolean().default(true),
      }),
    )
    .min(1),
  no_proxy: z.array(z.string()).nullish(),
});
/** Free-form, or a ProxyConfig: what has `rules` must be one whole. */
const proxy = object.superRefine((given, context) => {
  if (!("rules" in given)) return;
  for (const { path, message } of proxyConfig.safeParse(given).error?.issues ?? []) {
    context.addIssue({ code: "custom", path, message });
  }
});
const templateSchema = z.object({
  id: text,
  name: z.string().min(1),
  image: z.string(),
  resources: z.union([resourceSpec, object]),
  volume_mounts: z.array(object).nullish(),
  proxy_config: proxy.nullish(),
  created_at: text,
  updated_at: text,
});
const deploymentSchema = z.object({ id: z.string().min(1), latest_revision_id: text, name: text });
const revisionSchema = z.object({ id: text, status: z.string().min(1) });

const TEMPLATES = "/v2/sandboxes/templates";
const DEPLOYMENTS = "/v2/deployments";
const DEPLOYED = "DEPLOYED";

/** Other statuses are not in the specification: these are documented in the control plane's own reference. */
export function hasFailed({ status }: Revision): boolean {
  return status.endsWith("_FAILED") || status === "SKIPPED" || status === "INTERRUPTED";
}

/** The client owns `http`: closing one closes the other. */
export function createControlPlaneClient(http: PlatformHttp, clock: Clock = systemClock): ControlPlaneClient {
  const get = async <T>(path: string, schema: z.ZodType<T>, { signal }: Asking): Promise<T> =>
    readJson(await http.get({ path, accept: "application/json", signal }), schema);
  const send = async <T>(
    method: "POST" | "PATCH",
    { path, body, schema }: { path: string; body: unknown; schema: z.ZodType<T> },
    { signal }: Asking,
  ): Promise<T> =>
    readJson(await http.send({ method, path, body, accept: "application/json", signal }), schema);
  const templatePath = (name: string) => `${TEMPLATES}/${encodeURIComponent(name)}`;
  const deploymentPath = (id: string) => `${DEPLOYMENTS}/${encodeURIComponent(id)}`;
  const revision: ControlPlaneClient["revision"] = async ({ deploymentId, revisionId }, io = {}) => {
    const path = `${deploymentPath(deploymentId)}/revisions/${encodeURIComponent(revisionId)}`;
    const { status } = await get(path, revisionSchema, io);
    return { id: revisionId, status };
  };
  return {
    template: async (name, io = {}) => fromWireTemplate(await get(templatePath(name), templateSchema, io)),
    renameTemplate: async ({ name, to }, io = {}) => {
      refuseName(to);
      const change = { path: templatePath(name), body: { name: to }, schema: templateSchema };
      return fromWireTemplate(await send("PATCH", change, io));
    },
    createDeployment: async (body, io = {}) =>
      fromWireDeployment(await send("POST", { path: DEPLOYMENTS, body, schema: deploymentSchema }, io)),
    deployment: async (id, io = {}) =>
      fromWireDeployment(await get(deploymentPath(id), deploymentSchema, io)),
    updateDeployment: async ({ id, body }, io = {}) =>
      fromWireDeployment(
        await send("PATCH", { path: deploymentPath(id), body, schema: deploymentSchema }, io),
      ),
    revision,
    waitForRevision: (of, { withinMs, signal, onStatus = () => {} }) =>
      pollUntil(`Revision ${of.revisionId}`, { withinMs, clock, signal }, async () => {
        const seen = await revision(of, { signal });
        onStatus(seen.status);
        return seen.status === DEPLOYED || hasFailed(seen) ? seen : undefined;
      }),
    close: () => http.close(),
  };
}

/** platform-api.md, Limits: said before a request is spent on it. */
function refuseName(name: string): void {
  if (name.length <= 63 && /^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(name)) return;
  throw new UsageError({
    code: "template_name_invalid",
    message: `${JSON.stringify(name.slice(0, 80).toWellFormed())} is no name of a template.`,
    next: "At most 63 lower-case letters, digits and -, beginning with a letter and ending with none but letter or digit.",
  });
}

function fromWireTemplate(wire: z.output<typeof templateSchema>): SandboxTemplate {
  return {
    id: wire.id ?? null,
    name: wire.name,
    image: wire.image,
    resources: wire.resources,
    volumeMounts: wire.volume_mounts ?? [],
    proxyConfig: wire.proxy_config ?? null,
    createdAt: wire.created_at ?? null,
    updatedAt: wire.updated_at ?? null,
  };
}

function fromWireDeployment(wire: z.output<typeof deploymentSchema>): Deployment {
  return { id: wire.id, latestRevisionId: wire.latest_revision_id ?? null, name: wire.name ?? null };
}
