import { EtlError, reasonOf, UnreachableError, UsageError } from "../../base/errors.ts";
import { shownUrl } from "../../base/url.ts";
import { type Address, UNBOUND, urlOf } from "./client.ts";

interface Server {
  readonly address: Address;
  readonly variable: string;
}

/** SQLSTATE class 28: user, password, certificate or pg_hba.conf. */
export function isLoginRefused(error: unknown): boolean {
  return error instanceof Error && /^28/.test(String((error as { code?: unknown }).code));
}

/** Returns `postgres_tls`, or undefined for other errors. Only for connections to Postgres, because others share the codes. */
export function tlsError(cause: unknown, of: Server): UnreachableError | undefined {
  const fault = tlsFaultOf(cause);
  if (fault === undefined) return undefined;
  const message = `${nameOf(of)} ${fault.problem}.`;
  const next = fault.next.replaceAll("DATABASE_URL", of.variable);
  return new UnreachableError({ code: "postgres_tls", message, next, retryable: true, cause });
}

/** Errors: `postgres_tls`, `postgres_refused`, `postgres_unreachable`. */
export function connectionError(cause: unknown, of: Server): EtlError {
  if (cause instanceof EtlError) return cause;
  // 3D000: an unknown database. The server runs, but the URL is wrong.
  if (isLoginRefused(cause) || (cause as { code?: unknown }).code === "3D000") {
    return new UsageError({
      code: "postgres_refused",
      message: `${nameOf(of)} refuses the connection: ${reasonOf(cause)}.`,
      next: `Check the user, password and database in ${of.variable}.`,
      cause,
    });
  }
  return new UnreachableError({
    code: "postgres_unreachable",
    message: `${nameOf(of)} does not respond: ${reasonOf(cause)}`,
    next: `Start it, or set ${of.variable} to a running server.`,
    retryable: true,
    cause,
  });
}

function nameOf({ address }: Server): string {
  return `Postgres at ${shownUrl(urlOf(address))}`;
}

interface TlsFault {
  readonly problem: string;
  readonly next: string;
}

const CORRECT = "Correct sslrootcert, sslcert and sslkey in DATABASE_URL, or the files.";

const UNKNOWN_CA =
  /^(UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|CERT_SIGNATURE_FAILURE|CERT_UNTRUSTED|INVALID_CA)$/;

/** Classifies errors of TLS of Node and Postgres. Undefined for any other error. */
function tlsFaultOf(error: unknown): TlsFault | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code = "", path, syscall } = error as NodeJS.ErrnoException;
  const { reason: message = error.message } = error as { reason?: string };
  if (UNKNOWN_CA.test(code)) {
    return {
      problem: `shows a certificate of a CA that is not known here (${code})`,
      next: "Add the file of its CA to DATABASE_URL: sslmode=verify-full&sslrootcert=/path/to/ca.pem.",
    };
  }
  if (code === "CERT_HAS_EXPIRED") {
    return {
      problem: "shows a certificate that has expired",
      next: "Renew the certificate of the server. It is accepted as soon as the server uses it.",
    };
  }
  if (code === "CERT_NOT_YET_VALID") {
    return {
      problem: "shows a certificate that is not valid yet",
      next: "Set the clocks of both hosts by NTP.",
    };
  }
  if (code === "ERR_TLS_CERT_ALTNAME_INVALID") {
    const { host, cert } = error as unknown as { host?: string; cert?: { subjectaltname?: string } };
    return {
      problem: `shows a certificate for ${cert?.subjectaltname ?? "another name"}, not for ${host}`,
      next: "Use a name of the certificate as the host in DATABASE_URL, or give the server a certificate for this one.",
    };
  }
  if (/does not support SSL/i.test(message)) {
    return {
      problem: "takes no TLS connection",
      next: "Switch TLS on at the server, or set sslmode=disable in DATABASE_URL if nobody else can read the network.",
    };
  }
  if (code === "28000" && /no encryption|SSL off/.test(message)) {
    return { problem: "takes TLS connections only", next: "Add sslmode=verify-full to DATABASE_URL." };
  }
  if (code === UNBOUND) {
    return {
      problem: "offers no login with channel binding",
      next: "Use an address that leads to the server itself by TLS, and a SCRAM password. Or remove channel_binding=require from DATABASE_URL.",
    };
  }
  if (/^ERR_SSL_.*ALERT/.test(code) || (code === "28000" && /client certificate/.test(message))) {
    return {
      problem: `refuses the client certificate of this host: ${message}`,
      next: "Give one that the server accepts: sslcert and sslkey in DATABASE_URL.",
    };
  }
  // A connection that is reset also fails with syscall `read`.
  if (syscall === "open" || (syscall === "read" && code !== "ECONNRESET")) {
    return {
      problem: `needs the file ${path ?? ""}, which cannot be read: ${code}`,
      next: CORRECT,
    };
  }
  if (/^ERR_OSSL_/.test(code)) {
    return { problem: `needs a certificate and key that fit: ${message}`, next: CORRECT };
  }
  return undefined;
}
