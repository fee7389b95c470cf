/** The numbers of records in order of arrival, 16 bytes a record outside of V8's heap, where no collection copies them. */
export class RecordColumns {
  #length = 0;
  #keys = new Int32Array(FIRST_ROOM);
  #hours = new Int32Array(FIRST_ROOM);
  #traces = new Float64Array(FIRST_ROOM);

  add(key: number, hour: number, traces: number): void {
    const at = this.#length++;
    if (at === this.#keys.length) {
      this.#keys = grown(this.#keys);
      this.#hours = grown(this.#hours);
      this.#traces = grown(this.#traces);
    }
    this.#keys[at] = key;
    this.#hours[at] = hour;
    this.#traces[at] = traces;
  }

  /**
   * `order` has the rows by key, and by hour within a key: those of a key begin at `firsts[key]`. `isAscending`: the hours of
   * each key arrived in order.
   */
  byKey(keys: number, isAscending: boolean) {
    const firsts = new Int32Array(keys + 1);
    for (let row = 0; row < this.#length; row++) (firsts[(this.#keys[row] as number) + 1] as number)++;
    for (let key = 0; key < keys; key++)
      firsts[key + 1] = (firsts[key + 1] as number) + (firsts[key] as number);
    const next = firsts.slice();
    const order = new Int32Array(this.#length);
    for (let row = 0; row < this.#length; row++) {
      const key = this.#keys[row] as number;
      order[next[key] as number] = row;
      (next[key] as number)++;
    }
    const hours = this.#hours;
    for (let key = 0; !isAscending && key < keys; key++)
      order
        .subarray(firsts[key], firsts[key + 1])
        .sort((a, b) => (hours[a] as number) - (hours[b] as number));
    return { hours, traces: this.#traces, order, firsts };
  }
}

const FIRST_ROOM = 1024;

function grown<T extends Int32Array | Float64Array>(column: T): T {
  const larger = new (column.constructor as new (length: number) => T)(2 * column.length);
  larger.set(column);
  return larger;
}
