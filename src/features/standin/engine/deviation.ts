import type { Refusal } from "./refusal.ts";

export interface Asked {
  readonly query: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** Makes the server another one at some paths. Tests use it for platforms that we cannot exclude. */
export interface Deviation {
  readonly path: RegExp;
  readonly reads?: (asked: Asked) => Asked;
  readonly refuses?: (query: Asked["query"]) => Refusal | undefined;
  readonly sends?: (
    body: string,
    asked: Asked,
  ) => {
    readonly status?: number;
    readonly headers?: Readonly<Record<string, string>>;
    readonly body: string;
  };
}
