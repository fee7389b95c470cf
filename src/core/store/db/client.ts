import type { Socket } from "node:net";
import pg from "pg";
import { type Session, startupSettings } from "./session.ts";

/** A connection string, or the holder of one that may change, such as a password file. */
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

/** Missing in pg's types. */
interface Driver {
  startup(settings: Readonly<Record<string, string>>): void;
}

const CLOSE_MS = 4_000;

/** Connects to the current address. Closes within its limit, although the other side does not. */
export class ClosingClient extends pg.Client {
  readonly url: string;
  readonly #closeMs: number;
  readonly #refused: Error | undefined;

  constructor({ address, session, closeMs = CLOSE_MS, ...config }: ClientConfig) {
    const url = urlOf(address);
    let [parsed, refused]: [pg.ClientConfig, Error | undefined] = [{}, undefined];
    try {
      // This reads the files of certificates.
      new pg.Client({ connectionString: strict(url) });
      parsed = { connectionString: strict(url) };
    } catch (error) {
      // The pool makes clients where nobody would catch an error.
      refused = error as Error;
    }
    super({ ...config, ...parsed });
    const driver = this.connection as unknown as Driver;
    const startup = driver.startup.bind(driver);
    driver.startup = (settings) => startup({ ...settings, ...startupSettings(session) });
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

/**
 * pg checks certificates fully in every mode of TLS, and warns that a later version will not. This keeps it so: use
 * `sslmode=no-verify` for less, or `uselibpqcompat=true` for the modes of libpq.
 */
function strict(connectionString: string): string {
  if (!URL.canParse(connectionString)) return connectionString;
  const url = new URL(connectionString);
  if (url.searchParams.get("uselibpqcompat") === "true") return connectionString;
  if (!["prefer", "require", "verify-ca"].includes(url.searchParams.get("sslmode") ?? ""))
    return connectionString;
  url.searchParams.set("sslmode", "verify-full");
  return url.href;
}

export function streamOf(client: pg.Client): Socket {
  return client.connection.stream as Socket;
}
