/**
 * A row reader reads the fields of one DataRow where they lie in the received bytes. It is moved from row to
 * row, so it is valid only until the function that was handed it returns; what its methods return is the
 * caller's own, strings and copies, and stays.
 *
 * Fields are counted from 0 and are in PostgreSQL's binary format. A reader of a number checks that the field
 * has as many bytes as its type: an int4 column read as int8 is an error, not a wrong number. NULL is an error
 * too, unless the name of the method ends in `OrNull`.
 */
export class RowReader {
  #bytes: Buffer = Buffer.alloc(0);
  #starts = new Int32Array(32);
  #lengths = new Int32Array(32);
  #count = 0;

  /** Moves to the row whose DataRow message has its body from `start` to `end`. */
  moveTo(bytes: Buffer, start: number, end: number): void {
    const count = bytes.readInt16BE(start);
    if (count > this.#starts.length) {
      this.#starts = new Int32Array(count);
      this.#lengths = new Int32Array(count);
    }
    let at = start + 2;
    for (let index = 0; index < count; index++) {
      const length = bytes.readInt32BE(at);
      at += 4;
      this.#starts[index] = at;
      this.#lengths[index] = length;
      if (length > 0) at += length;
    }
    if (at !== end) throw new Error(`a row of ${count} fields ends at byte ${at}, its message at ${end}`);
    this.#bytes = bytes;
    this.#count = count;
  }

  /** How many fields the row has. */
  get length(): number {
    return this.#count;
  }

  isNull(index: number): boolean {
    return this.#lengthOf(index) < 0;
  }

  bool(index: number): boolean {
    return this.#bytes[this.#fixed(index, "bool", 1)] !== 0;
  }

  int2(index: number): number {
    return this.#bytes.readInt16BE(this.#fixed(index, "int2", 2));
  }

  int4(index: number): number {
    return this.#bytes.readInt32BE(this.#fixed(index, "int4", 4));
  }

  /** Throws for a value that a number cannot hold exactly. */
  int8(index: number): number {
    const start = this.#fixed(index, "int8", 8);
    const value = this.#bytes.readInt32BE(start) * 2 ** 32 + this.#bytes.readUInt32BE(start + 4);
    if (Number.isSafeInteger(value)) return value;
    throw new RangeError(`field ${index} is the int8 ${this.#bytes.readBigInt64BE(start)}, past 2^53`);
  }

  float8(index: number): number {
    return this.#bytes.readDoubleBE(this.#fixed(index, "float8", 8));
  }

  text(index: number): string {
    return this.#string(index, "utf8");
  }

  /** The bytes of a bytea or text field as a string with one byte per character. */
  latin1(index: number): string {
    return this.#string(index, "latin1");
  }

  /** A copy of the bytes of a bytea or text field. */
  bytes(index: number): Buffer {
    const length = this.#present(index);
    const start = this.#starts[index]!;
    return Buffer.from(this.#bytes.subarray(start, start + length));
  }

  boolOrNull(index: number): boolean | null {
    return this.isNull(index) ? null : this.bool(index);
  }

  int2OrNull(index: number): number | null {
    return this.isNull(index) ? null : this.int2(index);
  }

  int4OrNull(index: number): number | null {
    return this.isNull(index) ? null : this.int4(index);
  }

  int8OrNull(index: number): number | null {
    return this.isNull(index) ? null : this.int8(index);
  }

  float8OrNull(index: number): number | null {
    return this.isNull(index) ? null : this.float8(index);
  }

  textOrNull(index: number): string | null {
    return this.isNull(index) ? null : this.text(index);
  }

  latin1OrNull(index: number): string | null {
    return this.isNull(index) ? null : this.latin1(index);
  }

  bytesOrNull(index: number): Buffer | null {
    return this.isNull(index) ? null : this.bytes(index);
  }

  #string(index: number, encoding: "utf8" | "latin1"): string {
    const length = this.#present(index);
    const start = this.#starts[index]!;
    return this.#bytes.toString(encoding, start, start + length);
  }

  #fixed(index: number, type: string, length: number): number {
    const actual = this.#present(index);
    if (actual === length) return this.#starts[index]!;
    throw new TypeError(`field ${index} has ${actual} bytes and cannot be read as ${type}`);
  }

  #present(index: number): number {
    const length = this.#lengthOf(index);
    if (length >= 0) return length;
    throw new TypeError(`field ${index} is null`);
  }

  #lengthOf(index: number): number {
    if (index >= 0 && index < this.#count) return this.#lengths[index]!;
    throw new RangeError(`the row has ${this.#count} fields, there is no field ${index}`);
  }
}
