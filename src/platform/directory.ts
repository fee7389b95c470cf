import { z } from "zod";
import { PlatformError } from "../errors.ts";
import { cutFault, foreignFault } from "./answer-fault.ts";
import type { PlatformHttp } from "./http.ts";
import { faultError } from "./http-errors.ts";
import { ValueScanner } from "./json-scan.ts";
import { describeValue, fromWireId, fromWireName } from "./wire-values.ts";

export interface WorkspaceListing {
  readonly id: string;
  readonly displayName: string | null;
  readonly isDeleted: boolean;
}

export interface Organization {
  readonly id: string;
  readonly displayName: string | null;
}

/** An organisation of ten thousand workspaces lists some 5 MB. */
const MAX_BYTES = 33_554_432;

const text = z.string().nullish();
const workspacesSchema = z.array(
  z.object({ id: z.string().min(1), display_name: text, is_deleted: z.boolean().nullish() }),
);
const organizationSchema = z.object({ id: z.string().min(1), display_name: text });
const infoSchema = z.object({ version: text });

interface Asking {
  readonly signal?: AbortSignal | undefined;
}

/** `GET /api/v1/workspaces` (platform-facts.md, Requests). */
export async function listWorkspaces(
  http: PlatformHttp,
  { signal, includeDeleted }: Asking & { readonly includeDeleted?: boolean | undefined },
): Promise<WorkspaceListing[] | undefined> {
  const query = new URLSearchParams(includeDeleted === true ? { include_deleted: "true" } : {});
  const listed = await readDocument({
    http,
    path: "/api/v1/workspaces",
    query,
    schema: workspacesSchema,
    signal,
  });
  return listed?.map((one) => ({
    id: requireId(one.id),
    displayName: fromWireName(one.display_name),
    isDeleted: one.is_deleted === true,
  }));
}

/** `GET /api/v1/orgs/current`. */
export async function currentOrganization(
  http: PlatformHttp,
  { signal }: Asking,
): Promise<Organization | undefined> {
  const found = await readDocument({
    http,
    path: "/api/v1/orgs/current",
    schema: organizationSchema,
    signal,
  });
  return found && { id: requireId(found.id), displayName: fromWireName(found.display_name) };
}

/** `GET /api/v1/info`. */
export async function serverInfo(
  http: PlatformHttp,
  { signal }: Asking,
): Promise<{ version: string | null } | undefined> {
  const found = await readDocument({ http, path: "/api/v1/info", schema: infoSchema, signal });
  return found && { version: fromWireName(found.version) };
}

function requireId(text: string): string {
  return fromWireId(text) ?? text.toWellFormed();
}

/** A small document, read whole; undefined where the server does not have it (404, 405). */
async function readDocument<T>(input: {
  http: PlatformHttp;
  path: string;
  query?: URLSearchParams;
  schema: z.ZodType<T>;
  signal: AbortSignal | undefined;
}): Promise<T | undefined> {
  const { http, path, query, schema, signal } = input;
  const answer = await http
    .get({ path, accept: "application/json", signal, ...(query === undefined ? {} : { query }) })
    .catch((error: unknown) => {
      if (error instanceof PlatformError && (error.status === 404 || error.status === 405)) return undefined;
      throw error;
    });
  if (answer === undefined) return undefined;
  const { body, context } = answer;
  const fail = (fault: ReturnType<typeof cutFault>) => faultError(fault, body.status, context);
  const chunks: Buffer[] = [];
  for await (const chunk of body.chunks()) {
    chunks.push(chunk);
    if (body.bytes > MAX_BYTES) throw fail(foreignFault(`the answer is larger than ${MAX_BYTES} bytes`));
  }
  const bytes = Buffer.concat(chunks);
  const checked = schema.safeParse(parseDocument(bytes, fail));
  if (checked.success) return checked.data;
  const [issue] = checked.error.issues;
  throw fail(
    foreignFault(
      `${issue?.path.join(".") || "the answer"} is refused: ${issue?.message ?? "unknown reason"}`,
    ),
  );
}

function parseDocument(bytes: Buffer, fail: (fault: ReturnType<typeof cutFault>) => Error): unknown {
  const document = bytes
    .toString("utf8")
    .replace(/^\u{FEFF}/u, "")
    .trim();
  try {
    return JSON.parse(document);
  } catch {
    // What began as JSON and never closed was cut; anything else is another page.
    const begun = document === "" || /^[[{]/.test(document);
    if (begun && new ValueScanner().scan(Buffer.from(document), 0) === -1)
      throw fail(cutFault("the answer ends within its JSON"));
    throw fail(
      foreignFault(`the answer is not JSON: it begins with ${describeValue(document.slice(0, 60))}`),
    );
  }
}
