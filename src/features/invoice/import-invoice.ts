import { isDeepStrictEqual } from "node:util";
import { UsageError } from "../../core/base/errors.ts";
import { refuseGiven } from "../../core/base/given-file.ts";
import { lockSource } from "../../core/store/catalog/scopes.ts";
import type { Database, Store } from "../../core/store/db/database.ts";
import { type Actor, recordAction } from "../../core/store/work/operator-actions.ts";
import { explainInvoice } from "./explain-invoice.ts";
import type { Reading, Told } from "./finish-invoice.ts";
import type { Invoice } from "./invoice.ts";
import { moneyShown } from "./invoice-sums.ts";
import {
  addInvoice,
  type InvoiceSource,
  invoiceSources,
  type ListedInvoice,
  listInvoices,
  readInvoices,
  replaceInvoice,
} from "./invoices.store.ts";
import { findInvoices } from "./match.store.ts";
import { type FileForm, type GivenFile, readInvoices as readFile } from "./read-file.ts";
import type { Mapping } from "./read-table-file.ts";

/** `changed`: this number is stored with other figures. */
type InvoiceState = "new" | "unchanged" | "changed";

interface PreviewedInvoice extends Reading {
  readonly state: InvoiceState;
  /** Id of the stored version. */
  readonly replaces: number | undefined;
}

/** What an import would store. Nothing is stored yet. */
export interface InvoicePreview {
  readonly source: InvoiceSource;
  readonly file: GivenFile;
  readonly form: FileForm;
  readonly invoices: readonly PreviewedInvoice[];
}

export interface PreviewOptions extends Told {
  /** Slug. Undefined: the only source. */
  readonly source?: string | undefined;
  readonly mapping?: Mapping | undefined;
  /** Accepts an account that earlier invoices of the source do not have. */
  readonly acceptAccount?: boolean;
}

/** Errors: `file_invalid`, `invoice_account`, `source_unknown`. */
export async function previewInvoices(
  db: Database,
  file: GivenFile,
  options: PreviewOptions,
): Promise<InvoicePreview> {
  const sources = await invoiceSources(db);
  const source = chosen(sources, options.source);
  const { form, readings } = await readFile(file, {
    ...options,
    likelyIssuer: source.issuer ?? undefined,
    workspaces: source.workspaces.flatMap(({ id, name }) => [id, ...(name === null ? [] : [name])]),
  });
  const stored = await listInvoices(db, source.source);
  for (const { invoice, fields } of readings) {
    const why = foreignAccount(invoice, {
      source,
      sources,
      stored,
      acceptAccount: options.acceptAccount === true,
    });
    if (why === undefined) continue;
    const place = fields.find(({ field }) => field === "account")?.place;
    throw new UsageError({
      code: "invoice_account",
      message: `${file.name}${place === undefined ? "" : `, ${place}`}: ${why}.`,
      next: `Nothing was stored. Import it with --source of its organization.${
        options.acceptAccount === true ? "" : " If the account only has a new name, add --accept-account."
      }`,
    });
  }
  const keys = readings.map(({ invoice }) => keyOf(invoice));
  const twice = keys.find((key, at) => keys.indexOf(key) < at);
  refuseGiven(file.name, twice === undefined ? [] : [`it has two invoices ${twice}`]);
  return { source, file, form, invoices: await withStates(db, source, readings) };
}

function chosen(sources: readonly InvoiceSource[], slug: string | undefined): InvoiceSource {
  const [only, ...others] = slug === undefined ? sources : sources.filter(({ source }) => source === slug);
  if (only !== undefined && others.length === 0) return only;
  const known = sources.map(({ source }) => source).join(", ");
  throw new UsageError({
    code: "source_unknown",
    message:
      slug === undefined
        ? "There is not exactly one source, so the invoice's must be named."
        : `There is no loaded source ${slug}.`,
    next: known === "" ? "Run `usage-etl sync` first." : `Give --source with one of: ${known}.`,
  });
}

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const isSame = (one: string | null, other: string | null) =>
  one !== null && one.toLowerCase() === other?.toLowerCase();

/** Why the invoice seems to be another organization's. */
function foreignAccount(
  { account, issuer, lines }: Invoice,
  {
    source,
    sources,
    stored,
    acceptAccount,
  }: {
    source: InvoiceSource;
    sources: readonly InvoiceSource[];
    stored: readonly ListedInvoice[];
    acceptAccount: boolean;
  },
): string | undefined {
  const others = sources.filter((one) => one !== source);
  const own = new Set(source.workspaces.map(({ id }) => id));
  for (const { workspace, place } of lines) {
    const other = others.find(({ workspaces }) => workspaces.some(({ id }) => isSame(id, workspace)));
    if (workspace !== null && other !== undefined && !own.has(workspace.toLowerCase())) {
      return `${place} charges workspace ${workspace}, which is of source ${other.source}, not ${source.source}`;
    }
  }
  const isOwn = isSame(account, source.organizationId) || isSame(account, source.organizationName);
  if (account === null || isOwn) return undefined;
  if (UUID.test(account) && source.organizationId !== null) {
    return `its account is ${account}, and source ${source.source} is organization ${source.organizationId}`;
  }
  const other = others.find(
    (one) => isSame(account, one.organizationId) || isSame(account, one.organizationName),
  );
  if (other !== undefined) return `its account is ${account}, the organization of source ${other.source}`;
  const earlier = stored.filter((one) => one.issuer === issuer && one.account !== null);
  if (acceptAccount || earlier.length === 0 || earlier.some((one) => isSame(one.account, account)))
    return undefined;
  return `its account is ${account}, and earlier invoices of source ${source.source} have ${earlier[0]?.account}`;
}

const keyOf = ({ issuer, number }: Pick<Invoice, "issuer" | "number">) => `${number} of ${issuer}`;

async function withStates(
  db: Database,
  { source }: InvoiceSource,
  readings: readonly Reading[],
): Promise<PreviewedInvoice[]> {
  const found: PreviewedInvoice[] = [];
  for (const reading of readings) {
    const { invoice } = reading;
    const versions = await readInvoices(db, { source, number: invoice.number });
    const current = versions.find((one) => keyOf(one) === keyOf(invoice));
    const state = current === undefined ? "new" : isUnchanged(invoice, current) ? "unchanged" : "changed";
    found.push({ ...reading, state, replaces: current?.invoiceId });
  }
  return found;
}

/** Compares everything but where it was read. */
function isUnchanged({ lines, ...facts }: Invoice, stored: Invoice): boolean {
  const charged = (all: Invoice["lines"]) => all.map(({ place: _, sourceText: __, ...line }) => line);
  return (
    Object.entries(facts).every(([key, value]) => stored[key as keyof typeof facts] === value) &&
    isDeepStrictEqual(charged(lines), charged(stored.lines))
  );
}

export interface ImportOptions {
  readonly replace: boolean;
  /** Why sums that do not add up are accepted. */
  readonly acceptDifference?: string | undefined;
  readonly by: Actor;
}

/** Errors: `invoice_differs`, `invoice_stored`. */
export function refuseOpen(
  { file, invoices }: InvoicePreview,
  { replace, acceptDifference }: Omit<ImportOptions, "by">,
): void {
  const differing = invoices.flatMap(({ differences, state }) => (state === "unchanged" ? [] : differences));
  if (differing.length > 0 && !acceptDifference?.trim()) {
    throw new UsageError({
      code: "invoice_differs",
      message: `${file.name} does not add up:\n  ${differing.join("\n  ")}`,
      next: "Nothing was stored. Compare the figures with the file. To store it as it is, add --accept-difference REASON.",
    });
  }
  const changed = invoices.filter(({ state }) => state === "changed").map(({ invoice }) => keyOf(invoice));
  if (changed.length > 0 && !replace) {
    throw new UsageError({
      code: "invoice_stored",
      message: `Invoice ${changed.join(", ")} is stored with other figures.`,
      next: "Nothing was stored. Compare them with `usage-etl invoice show NUMBER`. To replace it and keep the old version as history, add --replace.",
    });
  }
}

/** Stores all invoices of a file, or none. Errors: `invoice_differs`, `invoice_stored`. Returns their ids, without unchanged ones. */
export async function importInvoices(
  store: Store,
  preview: InvoicePreview,
  options: ImportOptions,
): Promise<number[]> {
  const { source, file, form } = preview;
  const added = await store.transaction(async ({ db }) => {
    await lockSource(db, source.sourceId);
    // Another import may have stored it since the preview.
    const invoices = await withStates(db, source, preview.invoices);
    refuseOpen({ ...preview, invoices }, options);
    const ids: number[] = [];
    for (const { invoice, state, differences, replaces } of invoices) {
      if (state === "unchanged") continue;
      if (replaces !== undefined) await replaceInvoice(db, replaces);
      const accepted = differences.length === 0 ? null : (options.acceptDifference?.trim() ?? null);
      const by = options.by.name ?? "an operator";
      ids.push(
        await addInvoice(db, {
          sourceId: source.sourceId,
          invoice,
          file: { ...file, form },
          acceptedDifference: accepted,
          by,
        }),
      );
      const { total, currency } = invoice;
      const did = replaces === undefined ? "" : ", replaced";
      const why = accepted === null ? "" : `; ${differences.join("; ")}: ${accepted}`;
      await recordAction(db, options.by, {
        sourceId: source.sourceId,
        action: "invoice.import",
        detail: `invoice ${keyOf(invoice)}, ${moneyShown(total)} ${currency}, ${file.name}${did}${why}`,
      });
    }
    return ids;
  });
  const found = await findInvoices(store.db, { source: source.source });
  for (const one of found) if (added.includes(one.invoiceId)) await explainInvoice(store, one);
  return added;
}
