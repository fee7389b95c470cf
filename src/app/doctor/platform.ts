import type { SourceConfig } from "../../core/base/config.ts";
import { UnreachableError, UsageError } from "../../core/base/errors.ts";
import { DAY_MS, floorToGrid } from "../../core/domain/time/stride.ts";
import { isKeyRefused } from "../../core/pipeline/source/refused-key.ts";
import type { BillingClient } from "../../core/platform/billing/billing.ts";
import { unlessAbsent } from "../../core/platform/http/errors.ts";
import { type Notes, problemOf } from "../../terminal/check.ts";
import { EXIT, exitCodeOf, firstExit } from "../../terminal/exit.ts";

const RESPONSE_WITHIN_MS = 20_000;
/** Newer documentation of Cloud allows a key 2,000 requests a minute (docs/platform.md). */
const MOST_IN_10_S = 333;

/** `absent`: the server does not have the call (404, 405). */
interface Call<T> {
  readonly name: string;
  readonly response?: T | undefined;
  readonly error?: unknown;
}

export interface PlatformView {
  readonly isKeyAccepted: boolean;
  readonly organizationId: string | undefined;
  readonly listed: readonly { readonly id: string; readonly isDeleted: boolean }[] | undefined;
}

/** Sends each request once and stores nothing. `known`: a stored workspace, used if the platform lists none. */
export async function checkPlatform(
  billing: BillingClient,
  {
    source,
    known,
    now,
    signal,
  }: { source: SourceConfig; known: readonly string[]; now: number; signal: AbortSignal },
  notes: Notes,
): Promise<PlatformView> {
  const io = { signal: AbortSignal.any([signal, deadlineOf(source)]) };
  const [info, organization, listing] = await Promise.all([
    call("info", billing.info(io)),
    call("organization", billing.organization(io)),
    call("workspaces", billing.workspaces({ includeDeleted: true, ...io })),
  ]);
  const listed = listing.response?.map((one) => ({ id: one.id.toLowerCase(), isDeleted: one.isDeleted }));
  const readable = listed?.filter(({ isDeleted }) => !isDeleted).map(({ id }) => id) ?? [];
  const requested = source.workspaceIds.find((id) => listed === undefined || readable.includes(id));
  const workspaceId = requested ?? readable[0] ?? known[0];
  const end = floorToGrid(now, DAY_MS);
  const query = { start: end - DAY_MS, end, meter: "traces" as const, groupBy: "workspace" as const };
  const usage =
    workspaceId === undefined
      ? undefined
      : await call(
          "usage",
          unlessAbsent(
            billing.usage({ ...query, workspaceIds: [workspaceId] }, { ...io, onRecords: () => {} }),
          ),
        );
  const calls: readonly Call<unknown>[] = [info, organization, listing, usage].filter(
    (one) => one !== undefined,
  );
  signal.throwIfAborted();
  noteCalls(calls, { source, version: info.response?.version ?? undefined }, notes);
  const isKeyAccepted = noteKey(calls, notes);
  noteRate(source, notes);
  return { isKeyAccepted, organizationId: organization.response?.id, listed };
}

function noteRate(
  { rateLimit, baseUrl }: Pick<SourceConfig, "rateLimit" | "baseUrl">,
  notes: Pick<Notes, "warn">,
): void {
  const isCloud = /(^|\.)smith\.langchain\.com$/.test(new URL(baseUrl).hostname);
  if (!isCloud || rateLimit <= MOST_IN_10_S) return;
  notes.warn("rate_limit", {
    code: "rate_limit_high",
    message: `USAGE_RATE_LIMIT is ${rateLimit} requests per 10 s, and the platform grants a key 2,000 a minute, which is ${MOST_IN_10_S} per 10 s.`,
    next: `Set USAGE_RATE_LIMIT to at most ${MOST_IN_10_S}, unless the platform has granted you more.`,
  });
}

function deadlineOf({ baseUrl }: SourceConfig): AbortSignal {
  const deadline = new AbortController();
  const late = new UnreachableError({
    code: "timeout",
    message: `${baseUrl} did not respond within ${RESPONSE_WITHIN_MS / 1000} s.`,
    next: "Check whether the platform is up, and proxies on the way.",
  });
  setTimeout(() => deadline.abort(late), RESPONSE_WITHIN_MS).unref();
  return deadline.signal;
}

async function call<T>(name: string, responded: Promise<T>): Promise<Call<T>> {
  return responded.then(
    (response) => ({ name, response }),
    (error) => ({ name, error }),
  );
}

function noteCalls(
  calls: readonly Call<unknown>[],
  { source, version }: { source: SourceConfig; version: string | undefined },
  notes: Notes,
): undefined {
  const named = (of: (call: Call<unknown>) => boolean) => calls.filter(of).map(({ name }) => name);
  const responded = named(({ response }) => response !== undefined);
  const absent = named(({ response, error }) => response === undefined && error === undefined);
  const failed = calls.filter(({ error }) => error !== undefined && !isKeyRefused(error));
  const said = version === undefined ? "" : ` (version ${version})`;
  const parts = [
    responded.length > 0 && `responded: ${responded.join(", ")}${said}`,
    absent.length > 0 && `not there (404): ${absent.join(", ")}`,
    failed.length > 0 && `failed: ${failed.map(({ name }) => name).join(", ")}`,
  ];
  const summary = `${source.baseUrl}: ${parts.filter((part) => part !== false).join("; ")}`;
  const [first] = failed;
  if (first !== undefined) {
    const { code, message, next } = problemOf(first.error);
    const exits = failed.map(({ error }) => exitCodeOf(error));
    notes.fail("platform", { code, message: `${summary}. ${message}`, next }, firstExit(exits));
    return;
  }
  const isNothingThere = absent.length === calls.length;
  if (!isNothingThere && !absent.includes("usage")) return notes.pass("platform", summary);
  const what = isNothingThere
    ? "None of the calls of the platform's API exists at this address."
    : "Usage cannot be read.";
  const problem = {
    code: "platform_not_found",
    message: `${summary}. ${what}`,
    next: "Set USAGE_BASE_URL to the host of your region, or to a self-hosted platform with its path prefix.",
  };
  notes.fail("platform", problem, EXIT.usage);
}

/** `info` needs no key, so its response does not show that the key is valid. */
function noteKey(calls: readonly Call<unknown>[], notes: Notes): boolean {
  const refused = calls.find(({ error }) => isKeyRefused(error));
  if (refused !== undefined) {
    notes.fail("key", problemOf(refused.error));
    return false;
  }
  const by = calls.filter(({ name, response }) => name !== "info" && response !== undefined);
  if (by.length === 0) notes.skip("key", "No call that needs the key responded.");
  else notes.pass("key", `is accepted: ${by.map(({ name }) => name).join(", ")}`);
  return by.length > 0;
}

/** Uses only the live listing, because stored workspaces may be a week old. `isOpened`: the source had a sync. */
export function checkWorkspaces(
  view: PlatformView,
  { source, isOpened }: { source: SourceConfig; isOpened: boolean },
  notes: Notes,
): undefined {
  const { listed } = view;
  const { workspaceIds: wanted, slug, baseUrl } = source;
  if (!view.isKeyAccepted) return notes.skip("workspaces", "The key was not accepted.");
  if (listed === undefined) {
    if (wanted.length > 0)
      notes.skip("workspaces", `The server lists none. ${wanted.length} are configured.`);
    else notes.fail("workspaces", noneListed(baseUrl, slug, "does not list its workspaces"));
    return;
  }
  if (listed.length === 0) return notes.fail("workspaces", noneListed(baseUrl, slug, "lists no workspace"));
  const deleted = listed.filter(({ isDeleted }) => isDeleted).length;
  const shown = `the listing has ${listed.length}${deleted === 0 ? "" : `, ${deleted} of them deleted`}`;
  const unknown = wanted.filter((id) => !listed.some((one) => one.id === id));
  if (unknown.length === 0) {
    const which = wanted.length === 0 ? "all" : `${wanted.length}`;
    notes.pass("workspaces", `${shown}; ${which} are ${isOpened ? "loaded" : "to be loaded"}`);
    return;
  }
  notes.fail(
    "workspaces",
    {
      code: "workspace_unknown",
      message: `The platform does not list ${unknown.length} of ${wanted.length} configured workspaces: ${unknown.join(", ")}.`,
      next: "Correct USAGE_WORKSPACE_IDS, or give the API key access to these workspaces.",
    },
    EXIT.usage,
  );
}

function noneListed(baseUrl: string, slug: string, what: string): UsageError {
  return new UsageError({
    code: "workspaces_unknown",
    message: `${baseUrl} ${what} for the key of source ${slug}.`,
    next: "Check that the key belongs to the organization and may read its workspaces, or set USAGE_WORKSPACE_IDS to comma-separated UUIDs.",
  });
}
