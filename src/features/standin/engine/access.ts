import type { Organisation, Workspace } from "./organisation.ts";
import { forbidden, invalidToken, workspaceRequired } from "./refusal.ts";

/** `no wrong key`: only a wrong key is refused. `workspace`: a key of the organization also needs `X-Tenant-Id`. */
export type Needs =
  | "nothing"
  | "no wrong key"
  | "key"
  | "organization:read"
  | "organization:manage"
  | "workspace";

/** Tests revoke and grant each permission while the server runs. */
export class Access {
  apiKey: string;
  revoked = false;
  organizationRead = true;
  readonly organizationScoped: boolean;
  organizationManage = true;
  /** Whether the listing shows unreadable workspaces (our guess: no). */
  listsUnreadable = false;
  readonly unlisted = new Set<Workspace>();
  readonly #organisation: Organisation;
  readonly #unreadable: Set<Workspace>;

  constructor(of: { apiKey: string; organizationScoped: boolean; organisation: Organisation }) {
    const { apiKey, organizationScoped, organisation } = of;
    this.apiKey = apiKey;
    this.organizationScoped = organizationScoped;
    this.#organisation = organisation;
    this.#unreadable = new Set(organisation.unreadable);
  }

  setReadable(workspace: Workspace, readable: boolean): void {
    if (readable) this.#unreadable.delete(workspace);
    else this.#unreadable.add(workspace);
  }

  /** Responses contain only readable workspaces (docs/platform.md, Records). */
  canRead(workspace: Workspace): boolean {
    return !this.#unreadable.has(workspace);
  }

  isListed(workspace: Workspace): boolean {
    return !this.unlisted.has(workspace) && (this.listsUnreadable || this.canRead(workspace));
  }

  /** `X-Organization-Id` and `X-Tenant-Id` are documented. How a wrong value is refused is our guess. */
  check(needs: Needs, headers: Readonly<Record<string, string | string[] | undefined>>): void {
    if (needs === "nothing") return;
    if (needs === "no wrong key" && headers["x-api-key"] === undefined) return;
    if (this.revoked || headers["x-api-key"] !== this.apiKey) throw invalidToken();
    if (needs === "organization:read" && !this.organizationRead) throw forbidden();
    if (needs === "organization:manage" && !this.organizationManage) throw forbidden();
    const organisation = headers["x-organization-id"];
    if (organisation !== undefined && organisation !== this.#organisation.id) throw forbidden();
    const tenant = headers["x-tenant-id"];
    // The control plane needs the header (documented). Body: seen (docs/platform.md, Control plane, Requests).
    if (needs === "workspace" && this.organizationScoped && tenant === undefined) throw workspaceRequired();
    if (
      tenant !== undefined &&
      !this.#organisation.workspaces.some((w) => w.id === tenant && this.canRead(w))
    ) {
      throw forbidden();
    }
  }
}
