import { readFileSync } from "node:fs";
import { NO_TEXT, textOf } from "./given-file.ts";

type SecretReading = { readonly value: string } | { readonly problem: string };

/** A value that no log, error or page shows. */
export class Secret {
  #value: string;
  #problem: string | undefined;
  readonly #read: (() => SecretReading) | undefined;

  /** Without `read` the value never changes. */
  constructor(value: string, read?: () => SecretReading) {
    this.#value = value;
    this.#read = read;
  }

  /**
   * Reads the file each time, so that a rotated secret is used at once. Without a usable file the last value
   * stays, since it may still be valid; see `problem`.
   */
  reveal(): string {
    const reading = this.#read?.();
    if (reading === undefined) return this.#value;
    if ("value" in reading) this.#value = reading.value;
    this.#problem = "problem" in reading ? reading.problem : undefined;
    return this.#value;
  }

  /** Problem of the file at the last `reveal`; never shows the value. */
  problem(): string | undefined {
    return this.#problem;
  }

  isFromFile(): boolean {
    return this.#read !== undefined;
  }

  toJSON(): string {
    return "[redacted]";
  }
  toString(): string {
    return "[redacted]";
  }
  [Symbol.for("nodejs.util.inspect.custom")](): string {
    return "[redacted]";
  }
}

/** `problemsOf` checks the content. Without a usable secret, adds to `problems` and returns undefined. */
export function secretFromFile(
  file: string,
  where: string,
  problems: string[],
  problemsOf: (content: string) => readonly string[] = () => [],
): Secret | undefined {
  const read = (): SecretReading => {
    const found: string[] = [];
    const value = readSecretFile(file, where, found);
    if (value !== undefined) found.push(...problemsOf(value));
    return value !== undefined && found.length === 0 ? { value } : { problem: found.join("; ") };
  };
  const first = read();
  if ("value" in first) return new Secret(first.value, read);
  problems.push(first.problem);
  return undefined;
}

export function readSecretFile(file: string, where: string, problems: string[]): string | undefined {
  try {
    const text = textOf(readFileSync(file))?.trim();
    if (text) return text;
    problems.push(`${where} ${file} ${text === undefined ? `cannot be read: ${NO_TEXT}` : "is empty"}`);
  } catch (error) {
    // The system's message repeats the path. Somebody may have set the secret itself in place of its path.
    const isPath = file.includes("/") && !file.includes("://");
    const { code } = error as NodeJS.ErrnoException;
    const what = isPath ? `${file} cannot be read` : "is not the path of a file that can be read";
    problems.push(`${where} ${what}: ${code}`);
  }
  return undefined;
}
