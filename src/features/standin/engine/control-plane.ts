import { randomUUID } from "node:crypto";
import { z } from "zod";
import { Refusal } from "./refusal.ts";

/** DNS-1035, at most 63 characters (docs/platform.md, Control plane). */
export const templateName = z
  .string()
  .max(63, "String should have at most 63 characters")
  .regex(/^[a-z]([-a-z0-9]*[a-z0-9])?$/, "String should be in the form of DNS-1035");

type Template = { id: string; name: string; created_at: string; updated_at: string };

export class Templates {
  readonly #byName = new Map<string, Template>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
    const at = new Date(now()).toISOString();
    for (const given of SEEDED) {
      this.#byName.set(given.name, { id: randomUUID(), ...given, created_at: at, updated_at: at });
    }
  }

  of(name: string): Template {
    const template = this.#byName.get(name);
    if (template === undefined) {
      throw new Refusal(404, { detail: { error: "NotFound", message: `Template '${name}' not found` } });
    }
    return template;
  }

  /** A template may keep its own name (our guess). */
  rename(name: string, to: string | null | undefined): Template {
    const template = this.of(name);
    if (to === null || to === undefined || to === name) return template;
    if (this.#byName.has(to)) {
      throw new Refusal(409, { detail: { error: "Conflict", message: `Template '${to}' already exists` } });
    }
    this.#byName.delete(name);
    Object.assign(template, { name: to, updated_at: new Date(this.#now()).toISOString() });
    this.#byName.set(to, template);
    return template;
  }
}

/** How a template is created is not known. Fields and defaults: docs/platform.md, Control plane. */
const SEEDED = [
  {
    name: "python",
    image: "python:3.13-slim",
    resources: { cpu: "1", memory: "1Gi", storage: "5Gi" },
    volume_mounts: [{ volume_name: "datasets", mount_path: "/data/datasets" }],
    proxy_config: {
      rules: [
        {
          name: "model-provider",
          match_hosts: ["*.example.com"],
          match_paths: [],
          // biome-ignore lint/suspicious/noTemplateCurlyInString: the platform's syntax for a secret
          inject_headers: { Authorization: "Bearer ${PROVIDER_KEY}" },
          enabled: true,
        },
      ],
      no_proxy: ["localhost"],
    },
  },
  {
    name: "node",
    image: "node:24-slim",
    resources: { cpu: "500m", memory: "512Mi", storage: null },
    volume_mounts: [],
    proxy_config: null,
  },
];

/** Deployments and revisions: docs/platform.md, Control plane, and the control plane's API reference (documented). */
const config = z.record(z.string(), z.unknown());
const source = z.enum(["github", "external_docker", "internal_docker", "internal_source"]);
const secrets = z.array(z.strictObject({ name: z.string().min(1), value: z.string() }));

export const newDeployment = z.strictObject({
  name: z.string().min(1),
  source,
  source_config: config.default({}),
  source_revision_config: config.default({}),
  secrets: secrets.default([]),
});
export const deploymentUpdate = z.strictObject({
  source_config: config.optional(),
  source_revision_config: config.optional(),
  secrets: secrets.optional(),
});

/** Statuses: documented; order: our guess. A source with the word `fail` does not build (our own). */
const TREND = ["CREATING", "QUEUED", "BUILDING", "DEPLOYING", "DEPLOYED"];
const FAILING = ["CREATING", "QUEUED", "BUILDING", "BUILD_FAILED"];

interface Revision {
  readonly id: string;
  readonly created_at: string;
  readonly source_revision_config: Readonly<Record<string, unknown>>;
  readonly trend: readonly string[];
  at: number;
}

interface Deployment {
  readonly id: string;
  readonly name: string;
  readonly source: string;
  source_config: Record<string, unknown>;
  readonly created_at: string;
  updated_at: string;
  readonly revisions: Revision[];
}

export class Deployments {
  readonly #byId = new Map<string, Deployment>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
  }

  create(given: z.output<typeof newDeployment>): object {
    const at = this.#at();
    const deployment: Deployment = {
      id: randomUUID(),
      name: given.name,
      source: given.source,
      source_config: given.source_config,
      created_at: at,
      updated_at: at,
      revisions: [this.#revision(given.source_revision_config)],
    };
    this.#byId.set(deployment.id, deployment);
    return toWire(deployment);
  }

  get(id: string): object {
    return toWire(this.#of(id));
  }

  /** Only a changed source creates a revision (documented). */
  update(id: string, given: z.output<typeof deploymentUpdate>): object {
    const deployment = this.#of(id);
    const latest = deployment.revisions.at(-1) as Revision;
    const wanted = given.source_revision_config;
    if (given.source_config !== undefined) deployment.source_config = given.source_config;
    if (wanted !== undefined && JSON.stringify(wanted) !== JSON.stringify(latest.source_revision_config)) {
      deployment.revisions.push(this.#revision(wanted));
    }
    deployment.updated_at = this.#at();
    return toWire(deployment);
  }

  /** Each request moves the revision one step, so that no test waits (our own). */
  revision(id: string, revisionId: string): object {
    const deployment = this.#of(id);
    const revision = deployment.revisions.find((one) => one.id === revisionId);
    if (revision === undefined) throw notFound("Revision", revisionId);
    const status = revision.trend[revision.at];
    revision.at = Math.min(revision.at + 1, revision.trend.length - 1);
    const { trend: _trend, at: _at, ...shown } = revision;
    return { ...shown, updated_at: this.#at(), source: deployment.source, status };
  }

  #of(id: string): Deployment {
    const deployment = this.#byId.get(id);
    if (deployment === undefined) throw notFound("Deployment", id);
    return deployment;
  }

  #revision(of: Readonly<Record<string, unknown>>): Revision {
    const trend = Object.values(of).some((value) => /\bfail\b/.test(String(value))) ? FAILING : TREND;
    return { id: randomUUID(), created_at: this.#at(), source_revision_config: of, trend, at: 0 };
  }

  #at(): string {
    return new Date(this.#now()).toISOString();
  }
}

/** Secrets are left out (our guess). */
function toWire({ revisions, ...deployment }: Deployment): object {
  return { ...deployment, latest_revision_id: (revisions.at(-1) as Revision).id };
}

/** The body is a sentence, as from FastAPI (our guess). */
function notFound(kind: string, id: string): Refusal {
  return new Refusal(404, { detail: `${kind} ${id} not found` });
}
