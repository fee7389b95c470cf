import type { Socket } from "node:net";
import tls from "node:tls";
import pg from "pg";
import { type Session, startupSettings } from "./session.ts";

export type Address = string | { reveal(): string };

export function urlOf(address: Address): string {
  return typeof address === "string" ? address : address.reveal();
}

interface ClientConfig extends Omit<pg.ClientConfig, "connectionString"> {
  readonly address: Address;
  /** Default: only the settings that a pooler accepts. Each transaction sets the others. */
  readonly session?: Session;
  readonly closeMs?: number;
}

interface Driver extends pg.Connection {
  ssl: boolean | tls.ConnectionOptions;
  startup(settings: Readonly<Record<string, string>>): void;
}

const CLOSE_MS = 4_000;

/** Error code: the server does not bind the login to the TLS connection. */
export const UNBOUND = "CHANNEL_BINDING";

/** Connects to the current address. Closes within `closeMs`, even if the server does not respond. */
export class ClosingClient extends pg.Client {
  readonly url: string;
  readonly #closeMs: number;
  readonly #refused: Error | undefined;

  constructor({ address, session, closeMs = CLOSE_MS, ...config }: ClientConfig) {
    const url = urlOf(address);
    const parameters = parametersOf(url);
    const binding = parameters.get("channel_binding") ?? "";
    let [parsed, refused]: [pg.ClientConfig, Error | undefined] = [{}, undefined];
    try {
      // This constructor reads the certificate files.
      new pg.Client({ connectionString: strict(url) });
      parsed = { connectionString: strict(url), enableChannelBinding: /^(prefer|require)$/.test(binding) };
    } catch (error) {
      // The pool creates clients where nobody would catch an error, so `connect` reports it.
      refused = error as Error;
    }
    super({ ...config, ...parsed });
    const driver = this.connection as unknown as Driver;
    const startup = driver.startup.bind(driver);
    driver.startup = (settings) => startup({ ...settings, ...startupSettings(session) });
    // The client shares this object, which hides the client's key from messages.
    if (isOfSystem(parameters) && refused === undefined) Object.assign(driver.ssl, { ca: systemCas() });
    if (binding === "require") requireBinding(driver);
    this.url = url;
    this.#closeMs = closeMs;
    this.#refused = refused;
  }

  override connect(): Promise<pg.Client>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
    const refused = this.#refused;
    if (callback === undefined) return refused === undefined ? super.connect() : Promise.reject(refused);
    if (refused === undefined) super.connect(callback);
    else process.nextTick(callback, refused);
    return undefined;
  }

  override end(): Promise<void>;
  override end(callback: (error: Error) => void): void;
  override end(callback?: (error: Error) => void): Promise<void> | void {
    if (this.#refused !== undefined) return callback === undefined ? super.end() : super.end(callback);
    const timer = setTimeout(() => streamOf(this).destroy(), this.#closeMs);
    this.once("end", () => clearTimeout(timer));
    return callback === undefined ? super.end() : super.end(callback);
  }
}

function parametersOf(address: string): URLSearchParams {
  return URL.canParse(address) ? new URL(address).searchParams : new URLSearchParams();
}

function isOfSystem(parameters: URLSearchParams): boolean {
  return parameters.get("sslrootcert") === "system";
}

let authorities: string[] | undefined;

/** CAs of this system, and those that Node includes or is configured with. */
function systemCas(): string[] {
  authorities ??= [...new Set([...tls.getCACertificates("system"), ...tls.getCACertificates("default")])];
  return authorities;
}

/** Refuses a login that is not bound to the TLS connection. pg binds it only if the server offers that. */
function requireBinding(driver: Driver): void {
  let isProved = false;
  const refuseUnless = (isBound: boolean) => {
    if (isBound) return;
    // The server's consent to the login may already be in the same chunk of data.
    driver.removeAllListeners("readyForQuery");
    driver.stream.destroy(Object.assign(new Error(UNBOUND), { code: UNBOUND }));
  };
  for (const event of ["authenticationCleartextPassword", "authenticationMD5Password"])
    driver.on(event, () => refuseUnless(false));
  driver.on("authenticationSASL", ({ mechanisms }: { mechanisms: readonly string[] }) =>
    refuseUnless(mechanisms.includes("SCRAM-SHA-256-PLUS")),
  );
  driver.on("authenticationSASLFinal", () => {
    isProved = true;
  });
  driver.on("authenticationOk", () => refuseUnless(isProved));
}

/**
 * pg checks certificates fully in every TLS mode, and warns that a later version will not. `verify-full` keeps the check. Use
 * `sslmode=no-verify` for less, or `uselibpqcompat=true` for the modes of libpq.
 */
function strict(connectionString: string): string {
  const given = parametersOf(connectionString);
  const isAlias = ["prefer", "require", "verify-ca"].includes(given.get("sslmode") ?? "");
  const isStricter = isAlias && given.get("uselibpqcompat") !== "true";
  if (!isStricter && !isOfSystem(given)) return connectionString;
  const url = new URL(connectionString);
  url.searchParams.set("sslmode", "verify-full");
  // pg would read a file named `system`.
  if (isOfSystem(given)) url.searchParams.delete("sslrootcert");
  return url.href;
}

export function streamOf(client: pg.Client): Socket {
  return client.connection.stream as Socket;
}
