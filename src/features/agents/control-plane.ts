import { z } from "zod";
import { type Clock, systemClock } from "../../core/base/clock.ts";
import { PlatformError, UsageError } from "../../core/base/errors.ts";
import type { PlatformHttp, RequestOptions } from "../../core/platform/http/http.ts";
import { getJson, sendJson } from "../../core/platform/http/read-body.ts";
import { pollUntil } from "./poll.ts";
import "../../core/base/validation.ts";

type FreeForm = Readonly<Record<string, unknown>>;

export type SandboxTemplate = Readonly<z.output<typeof templateSchema>>;
export type Deployment = Readonly<z.output<typeof deploymentSchema>>;

export interface Revision {
  readonly id: string;
  readonly status: string;
}

export type ControlPlaneClient = ReturnType<typeof createControlPlaneClient>;

interface RevisionOf {
  readonly deploymentId: string;
  readonly revisionId: string;
}

const text = z.string().nullable().default(null);
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
/** Any object; one with `rules` must be a valid ProxyConfig. */
const proxy = object.superRefine((given, context) => {
  if (!("rules" in given)) return;
  for (const { path, message } of proxyConfig.safeParse(given).error?.issues ?? []) {
    context.addIssue({ code: "custom", path, message });
  }
});
const templateSchema = z
  .object({
    id: text,
    name: z.string().min(1),
    image: z.string(),
    resources: z.union([resourceSpec, object]),
    volume_mounts: z.array(object).nullish(),
    proxy_config: proxy.nullable().default(null),
    created_at: text,
    updated_at: text,
  })
  .transform(({ volume_mounts, proxy_config, created_at, updated_at, ...rest }) => {
    const times = { createdAt: created_at, updatedAt: updated_at };
    return { ...rest, volumeMounts: volume_mounts ?? [], proxyConfig: proxy_config, ...times };
  });
const deploymentSchema = z
  .object({ id: z.string().min(1), latest_revision_id: text, name: text })
  .transform(({ id, latest_revision_id: latestRevisionId, name }) => ({ id, latestRevisionId, name }));
const revisionSchema = z.object({ id: text, status: z.string().min(1) });

const TEMPLATES = "/v2/sandboxes/templates";
const DEPLOYMENTS = "/v2/deployments";
const DEPLOYED = "DEPLOYED";
const CREATED =
  "The deployment may have been created. Look for it on the platform's page of deployments before you create it again.";
/** The server may not find a new revision at once. */
const UNFOUND_FOR_MS = 10_000;

/** The specification lists no failed status. These names come from the control plane's reference and common usage. */
export function hasFailed({ status }: Revision): boolean {
  return /(^|_)(FAILED|ERROR|CANCELL?ED|SKIPPED|INTERRUPTED)$/i.test(status);
}

/** Never sends a change twice. Throws `PlatformError` or the signal's reason. Closing the client closes `http`. */
export function createControlPlaneClient(http: PlatformHttp, clock: Clock = systemClock) {
  const templatePath = (name: string) => `${TEMPLATES}/${encodeURIComponent(name)}`;
  const deploymentPath = (id: string) => `${DEPLOYMENTS}/${encodeURIComponent(id)}`;
  const revision = async (
    { deploymentId, revisionId }: RevisionOf,
    io: RequestOptions = {},
  ): Promise<Revision> => {
    const path = `${deploymentPath(deploymentId)}/revisions/${encodeURIComponent(revisionId)}`;
    const { status } = await getJson(http, { path, ...io }, revisionSchema);
    return { id: revisionId, status };
  };
  return {
    template: (name: string, io?: RequestOptions) =>
      ofTemplates(getJson(http, { path: templatePath(name), withBearer: true, ...io }, templateSchema)),
    /** Error: `template_name_invalid`. */
    renameTemplate: async ({ name, to }: { name: string; to: string }, io?: RequestOptions) => {
      refuseName(to);
      const effect = `The template may have been renamed. Run \`usage-etl platform template get ${to}\` to see.`;
      const request = {
        method: "PATCH",
        path: templatePath(name),
        body: { name: to },
        withBearer: true,
        effect,
        ...io,
      } as const;
      return ofTemplates(sendJson(http, request, templateSchema));
    },
    /** The body is not checked, because the specification does not describe it. */
    createDeployment: (body: FreeForm, io?: RequestOptions) =>
      sendJson(http, { method: "POST", path: DEPLOYMENTS, body, effect: CREATED, ...io }, deploymentSchema),
    deployment: (id: string, io?: RequestOptions) =>
      getJson(http, { path: deploymentPath(id), ...io }, deploymentSchema),
    updateDeployment: ({ id, body }: { id: string; body: FreeForm }, io?: RequestOptions) => {
      const effect = `The deployment may have been changed. Run \`usage-etl platform deployment get ${id}\` to see its latest revision.`;
      const request = { method: "PATCH", path: deploymentPath(id), body, effect, ...io } as const;
      return sendJson(http, request, deploymentSchema);
    },
    revision,
    /** Returns the revision once it is deployed or has failed, or throws `DeadlineError`. */
    waitForRevision: (
      of: RevisionOf,
      {
        withinMs,
        signal,
        onStatus,
      }: RequestOptions & { withinMs: number; onStatus?: (status: string) => void },
    ) => {
      let isFound = false;
      const what = `The end of revision ${of.revisionId}`;
      return pollUntil(what, { withinMs, clock, signal }, async ({ leftMs, signal }) => {
        try {
          const seen = await revision(of, { signal });
          isFound = true;
          onStatus?.(seen.status);
          return seen.status === DEPLOYED || hasFailed(seen) ? seen : undefined;
        } catch (error) {
          const mayAppear = !isFound && withinMs - leftMs < UNFOUND_FOR_MS;
          if (mayAppear && error instanceof PlatformError && error.status === 404) return undefined;
          throw error;
        }
      });
    },
    close: () => http.close(),
  };
}

/** Newer servers have no templates: they respond with 405, or a 404 that is not `NotFound`. Error: `templates_missing`. */
async function ofTemplates<T>(requested: Promise<T>): Promise<T> {
  try {
    return await requested;
  } catch (error) {
    const isGone =
      error instanceof PlatformError &&
      (error.status === 405 || (error.status === 404 && error.reason === undefined));
    if (!isGone) throw error;
    const { method, url, status } = error;
    throw new PlatformError({
      code: "templates_missing",
      message: `This control plane has no sandbox templates: it refuses every request to that path. ${error.message}`,
      next: "Newer servers create sandboxes from snapshots, which have no templates. If your server has templates, check the host and path of USAGE_CONTROL_PLANE_URL.",
      method,
      url,
      ...(status === undefined ? {} : { status }),
      cause: error,
    });
  }
}

/** docs/platform.md, Control plane. */
function refuseName(name: string): void {
  if (name.length <= 63 && /^[a-z]([-a-z0-9]*[a-z0-9])?$/.test(name)) return;
  throw new UsageError({
    code: "template_name_invalid",
    message: `${JSON.stringify(name.slice(0, 80).toWellFormed())} is not a valid template name.`,
    next: "Use at most 63 lower-case letters, digits and -. Begin with a letter and end with a letter or digit.",
  });
}
