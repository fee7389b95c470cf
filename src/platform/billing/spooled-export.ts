import { ExportFlaw, type ExportRow } from "../../domain/usage/export.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import { PlatformError } from "../../errors.ts";
import { faultError, type RequestContext } from "../http/errors.ts";
import type { PlatformAnswer } from "../http/http.ts";
import { AnswerFault } from "../parse/answer-fault.ts";
import { CsvExportReader } from "../parse/csv-export.ts";
import { NotPlain } from "../parse/plain-csv.ts";
import { PlainExportReader } from "../parse/plain-export.ts";
import type { Spool } from "./spool.ts";

type Reader = typeof PlainExportReader | typeof CsvExportReader;

/** Reads all rows from the first on; to be called again for each attempt. */
export type ReadRows = () => AsyncGenerator<ExportRow[], void, undefined>;

/** An export that was received whole and is kept, to be read as often as need be. Must be closed. */
export class SpooledExport {
  /** False for a close-delimited body without gzip: rows that differ may be shown, never missing ones. */
  readonly whole: boolean;
  /** Of the body, decoded. */
  readonly bytes: number;
  readonly #answer: PlatformAnswer;
  readonly #spool: Spool;
  readonly #groupBy: GroupBy;
  readonly #signal: AbortSignal | undefined;

  constructor(
    answer: PlatformAnswer,
    kept: { spool: Spool; groupBy: GroupBy; signal: AbortSignal | undefined },
  ) {
    const { spool, groupBy, signal } = kept;
    this.#answer = answer;
    this.#spool = spool;
    this.#groupBy = groupBy;
    this.#signal = signal;
    this.whole = answer.body.framing !== "close" || answer.body.gzip;
    this.bytes = spool.bytes;
  }

  /**
   * Runs `use` over the rows, and once more with the careful reader (csv-parse) where the fast one, or `use` by an
   * `ExportFlaw`, found anything amiss: that one's verdict stands and names line and column. `use` must leave nothing behind
   * when it throws. Throws `PlatformError` for what is refused, what `use` throws,
   * and the reason of the request's signal.
   */
  async read<T>(use: (rows: ReadRows) => Promise<T>): Promise<T> {
    try {
      return await use(() => this.#rows(PlainExportReader));
    } catch (error) {
      if (!(error instanceof NotPlain || error instanceof AnswerFault || error instanceof ExportFlaw))
        throw error;
    }
    const { context, body } = this.#answer;
    try {
      return await use(() => this.#rows(CsvExportReader));
    } catch (error) {
      if (error instanceof AnswerFault) throw faultError(error, body.status, context);
      if (error instanceof ExportFlaw) throw flawError(error, body.status, context);
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#spool.close();
  }

  async *#rows(Reader: Reader): AsyncGenerator<ExportRow[], void, undefined> {
    let ready: ExportRow[][] = [];
    const reader = new Reader(this.#groupBy, (rows) => ready.push(rows));
    for await (const chunk of this.#spool.chunks({ lent: Reader === PlainExportReader })) {
      // A process that ends does not read on to the end of a large one.
      this.#signal?.throwIfAborted();
      await reader.push(chunk);
      yield* ready;
      ready = [];
    }
    await reader.end(this.whole);
    yield* ready;
  }
}

function flawError(flaw: ExportFlaw, status: number, { method, url, redact }: RequestContext): PlatformError {
  return new PlatformError({
    code: flaw.code,
    message: redact(`${method} ${url}: the export cannot be compared: ${flaw.message}`),
    next: "Nothing was compared or changed. `usage-etl doctor` shows what the server was seen to answer.",
    method,
    url,
    status,
  });
}
