import type { FastifyReply, FastifyRequest } from "fastify";
import { EtlError, reasonOf, UnreachableError } from "../core/base/errors.ts";
import { faultOf, stopsWrites } from "../core/base/faults.ts";
import type { Logger } from "../core/base/log.ts";
import { PackageMissingError } from "../core/base/optional.ts";
import { type Page, sendBare, sendPage, type Viewed } from "./layout.ts";
import { html, notice, prose } from "./parts.ts";

interface Problem {
  readonly status: number;
  readonly title: string;
  readonly message: string;
  readonly next: string;
  readonly code: string;
}

const NOT_FOUND: Problem = {
  status: 404,
  title: "There is no such page",
  message: "No page has this address.",
  next: "Begin at the overview.",
  code: "page_unknown",
};
const POSTGRES_AWAY: Problem = {
  status: 503,
  title: "Postgres does not respond",
  message: "The figures of this page are in Postgres, which cannot be read now.",
  next: "Nothing is lost. Run `usage-etl doctor` to see the cause, and reload this page once Postgres responds.",
  code: "postgres_unreachable",
};

const RETRY_AFTER_S = "2";

/**
 * Sends a page with the problem and the next step. It reads nothing, because Postgres may be away. `error` undefined: the
 * path is unknown. `viewed` undefined: nobody is logged in, so there is no navigation.
 */
export async function sendProblem(
  error: unknown,
  given: { request: FastifyRequest; reply: FastifyReply; log: Logger; viewed: Viewed | undefined },
): Promise<FastifyReply> {
  const { request, reply, log, viewed } = given;
  const isSourceUnknown = error instanceof EtlError && error.code === "source_unknown";
  const send = (status: number, page: Page) =>
    viewed === undefined
      ? sendBare(reply, status, page)
      : sendPage(reply, { ...page, status }, { ...viewed, isSourceUnknown });
  if (error instanceof EtlError && error.code === "source_unloaded" && request.method === "GET") {
    const body = html`${notice("info", html`<p>${prose(error.message)}</p><p>${prose(error.next)}</p>`)}
      <p><a href="/">Go to the overview</a></p>`;
    return send(200, { title: "Nothing is loaded yet", body });
  }
  const problem = error === undefined ? NOT_FOUND : problemOf(error);
  const { status, title, message, next, code } = problem;
  if (status >= 500) {
    const [path = ""] = request.url.split("?");
    log.warn({ code, path, reason: reasonOf(error) }, "page");
  }
  if (status === 503) reply.header("retry-after", RETRY_AFTER_S);
  const body = html`${notice(status >= 500 ? "bad" : "warn", html`<p>${prose(message)}</p><p>${prose(next)}</p>`)}
    <p class="code">Code: <code>${code}</code></p>
    <p><a href="/">Go to the overview</a></p>`;
  return send(status, { title, body });
}

function problemOf(error: unknown): Problem {
  if (error instanceof EtlError)
    return { ...errorPage(error), message: error.message, next: error.next, code: error.code };
  const {
    code = "",
    statusCode,
    message,
  } = error as { code?: string; statusCode?: number; message?: string };
  if (code === "FST_CSRF_INVALID_TOKEN" || code === "FST_CSRF_MISSING_SECRET") {
    return {
      status: 403,
      title: "This form is too old",
      message: "The form was not sent from a page of this session. Nothing was changed.",
      next: "Go back, reload the page and send the form again.",
      code: "form_expired",
    };
  }
  if (statusCode !== undefined && statusCode < 500) {
    const title = "This request is not valid";
    const next = "Begin at the overview.";
    return { status: statusCode, title, message: message ?? title, next, code: "request_invalid" };
  }
  if (["42P01", "42703", "3F000"].includes(code)) {
    return {
      status: 503,
      title: "The database schema does not fit",
      message: "A table or column that this page reads does not exist.",
      next: "Run `usage-etl migrate`. If the error stays, report it with the line of the log.",
      code: "schema_old",
    };
  }
  const fault = faultOf(error);
  if (fault?.code === "postgres_slow") {
    return {
      status: 503,
      title: "Postgres took too long",
      message: "The query of this page was stopped after some seconds.",
      next: "Reload the page, or choose a shorter range.",
      code: "page_too_slow",
    };
  }
  // 3D000: the database does not exist.
  if (code === "3D000" || (fault !== undefined && isAway(fault.code))) return POSTGRES_AWAY;
  if (fault !== undefined) {
    const title = "A server cannot do this now";
    return { status: 503, title, message: fault.message, next: fault.next, code: fault.code };
  }
  return {
    status: 500,
    title: "This page failed",
    message: "The service had an unexpected error, which is in its log.",
    next: "Reload the page. If the error stays, report it with the line of the log.",
    code: "unexpected",
  };
}

/** A Postgres that is full or read-only still responds. */
function isAway(code: string): boolean {
  return stopsWrites(code) && code !== "postgres_full" && code !== "postgres_read_only";
}

function errorPage(error: EtlError): { status: number; title: string } {
  if (error instanceof UnreachableError) return { status: 503, title: "A server does not respond" };
  if (error.code === "viewer_refused") return { status: 403, title: "Your login is read-only" };
  if (error.code === "pages_busy") return { status: 503, title: "Too many live pages" };
  if (error instanceof PackageMissingError) return { status: 501, title: "This is not installed" };
  if (/_(unknown|missing)$/.test(error.code)) return { status: 404, title: "Not found" };
  return { status: 400, title: "This cannot be shown" };
}
