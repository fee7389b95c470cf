import { randomUUID } from "node:crypto";
import { z } from "zod";
import { Refusal } from "../http/refusal.ts";
import type { PartState } from "../world.ts";

/** Fields and defaults: docs/platform.md, Control plane. */
const volumeMount = z.strictObject({ volume_name: z.string().min(1), mount_path: z.string().min(1) });
const proxyRule = z.strictObject({
  name: z.string(),
  match_hosts: z.array(z.string()).min(1),
  match_paths: z.array(z.string()).default([]),
  inject_headers: z.record(z.string(), z.string()),
  enabled: z.boolean().default(true),
});
const proxyConfig = z.strictObject({
  rules: z.array(proxyRule).min(1),
  no_proxy: z.array(z.string()).default([]),
});
const resources = z.strictObject({
  cpu: z.string().default("500m"),
  memory: z.string().default("512Mi"),
  storage: z.string().nullable().default(null),
});

/** DNS-1035, at most 63 characters (docs/platform.md, Control plane). */
export const templateName = z
  .string()
  .max(63, "String should have at most 63 characters")
  .regex(/^[a-z]([-a-z0-9]*[a-z0-9])?$/, "String should be in the form of DNS-1035");

/** What an admin route creates; how the platform creates one is not known. */
export const newTemplate = z.strictObject({
  name: templateName,
  image: z.string().min(1),
  resources: resources.prefault({}),
  volume_mounts: z.array(volumeMount).default([]),
  proxy_config: proxyConfig.nullable().default(null),
});
type NewTemplate = z.output<typeof newTemplate>;

type Template = NewTemplate & { readonly id: string; readonly created_at: string; updated_at: string };

/** The organisation's sandbox templates (docs/platform.md, Control plane). */
export class Templates implements PartState {
  readonly #byName = new Map<string, Template>();
  readonly #now: () => number;

  constructor(now: () => number) {
    this.#now = now;
    for (const given of SEEDED) this.create(newTemplate.parse(given));
  }

  create(given: NewTemplate): Template {
    this.#refuseTaken(given.name);
    const at = new Date(this.#now()).toISOString();
    const template = { ...given, id: randomUUID(), created_at: at, updated_at: at };
    this.#byName.set(given.name, template);
    return template;
  }

  of(name: string): Template {
    const template = this.#byName.get(name);
    if (template === undefined) {
      throw new Refusal(404, { detail: { error: "NotFound", message: `Template '${name}' not found` } });
    }
    return template;
  }

  /** Changes the name alone. That its own name is no conflict is our guess. */
  rename(name: string, to: string | null | undefined): Template {
    const template = this.of(name);
    if (to === null || to === undefined || to === name) return template;
    this.#refuseTaken(to);
    this.#byName.delete(name);
    Object.assign(template, { name: to, updated_at: new Date(this.#now()).toISOString() });
    this.#byName.set(to, template);
    return template;
  }

  inspect(): object {
    return { templates: [...this.#byName.values()] };
  }

  #refuseTaken(name: string): void {
    if (!this.#byName.has(name)) return;
    throw new Refusal(409, { detail: { error: "Conflict", message: `Template '${name}' already exists` } });
  }
}

const SEEDED: z.input<typeof newTemplate>[] = [
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
          // biome-ignore lint/suspicious/noTemplateCurlyInString: the platform's syntax for a secret
          inject_headers: { Authorization: "Bearer ${PROVIDER_KEY}" },
        },
      ],
      no_proxy: ["localhost"],
    },
  },
  { name: "node", image: "node:24-slim" },
];
