import { urlProblem } from "./url.ts";

const FORM = "postgresql://user:password@host:5432/database";

/** Parameters that have an effect, each with its values. */
const PARAMETERS: Readonly<Record<string, RegExp>> = {
  sslmode: /^(disable|prefer|require|verify-ca|verify-full|no-verify)$/,
  sslrootcert: /./,
  sslcert: /./,
  sslkey: /./,
  sslnegotiation: /^(postgres|direct)$/,
  uselibpqcompat: /^(true|false)$/,
  ssl: /^(true|1|0|no-verify)$/,
  channel_binding: /^(disable|prefer|require)$/,
  host: /^[^,]+$/,
  port: /^\d+$/,
  user: /./,
  application_name: /./,
  fallback_application_name: /./,
  options: /./,
  client_encoding: /^(utf8|utf-8)$/i,
};

/** Parameters of libpq, other drivers and hosts that it is not enough to remove. */
const INSTEAD: readonly (readonly [RegExp, string])[] = [
  [/^(dbname|database|db)$/, "write the database after the host, as in host:5432/database"],
  [/^(target_session_attrs|load_balance_hosts|hostaddr)$/, "remove it, and name the primary alone"],
  [/timeout|^keepalives/, "remove it: each connection sets its own limits"],
  [/^(schema|currentSchema|search_path)$/, "remove it: the schemas have fixed names"],
  [/^ssl/, "remove it. sslmode, sslrootcert, sslcert and sslkey are known"],
];

/** Returns why a text is no address of Postgres, without any part that may be a password. */
export function postgresUrlProblem(text: string): string | undefined {
  if (/^postgres(ql)?:\/\/([^/?#]*@)?[^@/?#]*,/i.test(text))
    return "names several hosts: name the primary alone, or an address that leads to it";
  const problem = urlProblem(text, /^postgres(ql)?:$/, `is not of the form ${FORM}`);
  if (problem !== undefined) return problem;
  const { searchParams } = new URL(text);
  for (const [name, value] of searchParams) {
    const shown = JSON.stringify(name);
    if (/pass/i.test(name)) return `has a password as a parameter: write it as in ${FORM}`;
    if (searchParams.getAll(name).length > 1) return `has the parameter ${shown} twice: keep one`;
    const known = Object.hasOwn(PARAMETERS, name) ? PARAMETERS[name] : undefined;
    if (known?.test(value)) continue;
    const instead = INSTEAD.find(([names]) => names.test(name))?.[1] ?? "remove it";
    return known === undefined
      ? `has a parameter ${shown}, which would have no effect: ${instead}`
      : `has a parameter ${shown} with a value that is not known: use ${known.source.replace(/[\^$()]/g, "").replaceAll("|", ", ")}`;
  }
  if (
    searchParams.get("sslrootcert") === "system" &&
    (searchParams.get("sslmode") ?? "verify-full") !== "verify-full"
  )
    return "has sslrootcert=system with another sslmode than verify-full: set sslmode=verify-full";
  return undefined;
}
