import { ExportFlaw, type ExportRow } from "../../domain/usage/export.ts";
import { PlatformError } from "../../errors.ts";
import { faultError, type RequestContext } from "../http/errors.ts";
import type { PlatformAnswer } from "../http/http.ts";
import { AnswerFault } from "../parse/answer-fault.ts";
import { CarefulCsv } from "../parse/careful-csv.ts";
import type { ExportSubject } from "../parse/csv-rows.ts";
import { ExportReader } from "../parse/export-reader.ts";
import { NotPlain, PlainCsv } from "../parse/plain-csv.ts";
import type { Spool } from "./spool.ts";

/** Each call reads all rows from the first, and returns whether the last one has no line end: it may be cut. */
export type ReadRows = () => AsyncGenerator<ExportRow[], boolean, undefined>;

/** A received export, kept for reading it several times. Must be closed. */
export class SpooledExport {
  /** False for a close-delimited body without gzip: it may show differing rows, never missing ones. */
  readonly whole: boolean;
  readonly #answer: PlatformAnswer;
  readonly #spool: Spool;
  readonly #subject: ExportSubject;
  readonly #signal: AbortSignal | undefined;

  constructor(
    answer: PlatformAnswer,
    kept: { spool: Spool; subject: ExportSubject; signal: AbortSignal | undefined },
  ) {
    const { spool, subject, signal } = kept;
    this.#answer = answer;
    this.#spool = spool;
    this.#subject = subject;
    this.#signal = signal;
    this.whole = answer.body.isEndProved;
  }

  /**
   * Runs `use` over the rows as the fast cutter reads them. If it or `use` (by an `ExportFlaw`) finds anything wrong, runs `use`
   * again with csv-parse, which decides and names line and column. `use` must leave nothing behind when it throws. Throws
   * `PlatformError` for a refused export, what `use` throws, and the signal's reason.
   */
  async read<T>(use: (rows: ReadRows) => Promise<T>): Promise<T> {
    try {
      return await use(() => this.#rows(PlainCsv));
    } catch (error) {
      if (!(error instanceof NotPlain || error instanceof AnswerFault || error instanceof ExportFlaw))
        throw error;
    }
    const { context, body } = this.#answer;
    try {
      return await use(() => this.#rows(CarefulCsv));
    } catch (error) {
      if (error instanceof AnswerFault) throw faultError(error, body.status, context);
      if (error instanceof ExportFlaw) throw flawError(error, body.status, context);
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#spool.close();
  }

  async *#rows(Cutter: typeof PlainCsv | typeof CarefulCsv): AsyncGenerator<ExportRow[], boolean, undefined> {
    let ready: ExportRow[][] = [];
    const reader = new ExportReader(Cutter, this.#subject, (rows) => ready.push(rows));
    for await (const chunk of this.#spool.chunks({ lent: Cutter === PlainCsv })) {
      // A process that shuts down does not read a large export to its end.
      this.#signal?.throwIfAborted();
      await reader.push(chunk);
      yield* ready;
      ready = [];
    }
    await reader.end(this.whole);
    yield* ready;
    return reader.isLastUnended;
  }
}

function flawError(flaw: ExportFlaw, status: number, { method, url, redact }: RequestContext): PlatformError {
  return new PlatformError({
    code: flaw.code,
    retryable: flaw.code === "answer_cut",
    message: redact(`${method} ${url}: the export cannot be compared: ${flaw.message}`),
    next: "Nothing was compared or changed. Run `usage-etl doctor` to see the server's capabilities.",
    method,
    url,
    status,
  });
}
