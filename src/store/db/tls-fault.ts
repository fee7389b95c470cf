/** What is wrong with a TLS connection to Postgres: `problem` goes on after its name. */
interface TlsFault {
  readonly problem: string;
  readonly next: string;
}

const CORRECT = "Correct sslrootcert, sslcert and sslkey in DATABASE_URL, or the files.";

const UNKNOWN_CA =
  /^(UNABLE_TO_VERIFY_LEAF_SIGNATURE|SELF_SIGNED_CERT_IN_CHAIN|DEPTH_ZERO_SELF_SIGNED_CERT|UNABLE_TO_GET_ISSUER_CERT(_LOCALLY)?|CERT_SIGNATURE_FAILURE|CERT_UNTRUSTED|INVALID_CA)$/;

/** Node's and Postgres's errors of TLS, by what they mean. Undefined for any other error. */
export function tlsFaultOf(error: unknown): TlsFault | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code = "", path, syscall } = error as NodeJS.ErrnoException;
  // Of OpenSSL's errors it alone is for people.
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
  if (/^ERR_SSL_.*ALERT/.test(code) || (code === "28000" && /client certificate/.test(message))) {
    return {
      problem: `refuses the client certificate of this host: ${message}`,
      next: "Give one that the server accepts: sslcert and sslkey in DATABASE_URL.",
    };
  }
  if (syscall === "open" || syscall === "read") {
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
