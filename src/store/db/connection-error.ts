import { EtlError, UnreachableError, UsageError } from "../../errors.ts";
import { withoutPassword } from "../../url.ts";
import { type Address, urlOf } from "./client.ts";
import { tlsFaultOf } from "./tls-fault.ts";

interface Server {
  readonly address: Address;
  /** The setting that names it. */
  readonly variable: string;
}

/** Class 28: user, password, certificate or pg_hba.conf. */
export function isLoginRefused(error: unknown): boolean {
  return error instanceof Error && /^28/.test(String((error as { code?: unknown }).code));
}

/** `postgres_tls`; undefined for an error that is not of TLS. Only of a connection to Postgres: others have the same codes. */
export function tlsError(cause: unknown, of: Server): UnreachableError | undefined {
  const fault = tlsFaultOf(cause);
  if (fault === undefined) return undefined;
  const message = `${nameOf(of)} ${fault.problem}.`;
  const next = fault.next.replaceAll("DATABASE_URL", of.variable);
  return new UnreachableError({ code: "postgres_tls", message, next, retryable: true, cause });
}

/** Why there is no connection, with the next step: `postgres_tls`, `postgres_refused`, `postgres_unreachable`. */
export function connectionError(cause: unknown, of: Server): EtlError {
  if (cause instanceof EtlError) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  // 3D000: an unknown database. The server runs, but the URL is wrong.
  if (isLoginRefused(cause) || (cause as { code?: unknown }).code === "3D000") {
    return new UsageError({
      code: "postgres_refused",
      message: `${nameOf(of)} refuses the connection: ${reason}.`,
      next: `Check user, password and database in ${of.variable}.`,
      cause,
    });
  }
  return new UnreachableError({
    code: "postgres_unreachable",
    message: `${nameOf(of)} does not answer: ${reason}`,
    next: `Start it, or set ${of.variable} to a running server.`,
    retryable: true,
    cause,
  });
}

function nameOf({ address }: Server): string {
  return `Postgres at ${withoutPassword(urlOf(address))}`;
}
