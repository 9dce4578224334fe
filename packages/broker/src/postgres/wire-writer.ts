/**
 * A wire writer puts the messages of one call, with every parameter in PostgreSQL's binary format, into one
 * buffer, so that a call is one write to the socket.
 *
 *   (Parse?  Bind  Execute)+  Sync
 *
 * Room for all parameters is reserved before the first of them is written: a large body is copied once, from
 * where the caller holds it into the message, and never again because the buffer grew behind it.
 *
 * `null` is NULL, as a value and as an element. `undefined` is refused: it is a forgotten value.
 */

const TYPES = {
  bool: { oid: 16, arrayOid: 1000, bytes: 1 },
  bytea: { oid: 17, arrayOid: 1001, bytes: undefined },
  int8: { oid: 20, arrayOid: 1016, bytes: 8 },
  int2: { oid: 21, arrayOid: 1005, bytes: 2 },
  int4: { oid: 23, arrayOid: 1007, bytes: 4 },
  text: { oid: 25, arrayOid: 1009, bytes: undefined },
  float8: { oid: 701, arrayOid: 1022, bytes: 8 },
} as const;

export type ElementType = keyof typeof TYPES;

/**
 * What a parameter is, and what JavaScript gives for it:
 *
 *   bool                boolean
 *   int2, int4, int8    number, a safe integer in the range of the type
 *   float8              number
 *   text                string, written as UTF-8
 *   bytea               Uint8Array, or a string with one byte per character (latin1)
 *   …[]                 an array (or typed array) of those
 *
 * A character past U+00FF in a bytea string loses its high bits: only strings read as latin1 belong there.
 */
export type ParameterType = ElementType | `${ElementType}[]`;

interface Parameter {
  readonly element: ElementType;
  readonly isArray: boolean;
  readonly oid: number;
}

const PARAMETERS: ReadonlyMap<ParameterType, Parameter> = new Map(
  (Object.keys(TYPES) as ElementType[]).flatMap((element): [ParameterType, Parameter][] => [
    [element, { element, isArray: false, oid: TYPES[element].oid }],
    [`${element}[]`, { element, isArray: true, oid: TYPES[element].arrayOid }],
  ]),
);

// Most calls fit; a larger one makes the buffer grow once.
const BYTES_AT_START = 16 * 1024;

// A buffer that one exceptional call made larger than this is given back at the next.
const BYTES_KEPT_MAX = 1024 * 1024;

// PostgreSQL ends the connection for a message of 1 GB or more.
const BYTES_MAX = 2 ** 30 - 1;

// Around the parameters: the heads of all messages, Execute and Sync. Names and texts are counted apart.
const FRAME_BYTES = 128;

const UTF8_BYTES_PER_CHARACTER_MAX = 3;

export class WireWriter {
  #bytes = Buffer.allocUnsafe(BYTES_AT_START);
  #view = viewOf(this.#bytes);
  #at = 0;

  /** What was written since `reset`. It shares memory with the writer. */
  get message(): Buffer {
    return this.#bytes.subarray(0, this.#at);
  }

  /**
   * Begins anew. The same memory is used again unless `inUse`: a socket that has not yet handed everything to
   * the kernel (its `writableLength` is not 0) still reads from it.
   */
  reset(inUse: boolean): void {
    if (inUse || this.#bytes.length > BYTES_KEPT_MAX) this.#replace(BYTES_AT_START);
    this.#at = 0;
  }

  parse(name: string, text: string, parameters: readonly ParameterType[]): void {
    this.#reserve(FRAME_BYTES + utf8Bound(name) + utf8Bound(text) + 4 * parameters.length);
    const start = this.#begin("P");
    this.#cstring(name);
    this.#cstring(text);
    this.#int2(parameters.length);
    for (const type of parameters) this.#int4(parameterOf(type).oid);
    this.#end(start);
  }

  /** Binds the unnamed portal of a prepared statement: all parameters binary, all results binary. */
  bind(name: string, parameters: readonly ParameterType[], values: readonly unknown[]): void {
    if (values.length !== parameters.length)
      throw new TypeError(`${name} takes ${parameters.length} parameters, got ${values.length}`);
    let bytes = FRAME_BYTES + utf8Bound(name);
    for (let index = 0; index < values.length; index++) bytes += bound(parameters[index]!, values[index]);
    this.#reserve(bytes);
    const start = this.#begin("B");
    this.#cstring("");
    this.#cstring(name);
    this.#int2(1);
    this.#int2(BINARY);
    this.#int2(values.length);
    for (let index = 0; index < values.length; index++) this.#parameter(parameters[index]!, values[index]);
    this.#int2(1);
    this.#int2(BINARY);
    this.#end(start);
  }

  /** Executes the unnamed portal to its last row. */
  execute(): void {
    this.#reserve(FRAME_BYTES);
    const start = this.#begin("E");
    this.#cstring("");
    this.#int4(0);
    this.#end(start);
  }

  /** Ends the implicit transaction. */
  sync(): void {
    this.#reserve(FRAME_BYTES);
    this.#end(this.#begin("S"));
  }

  /** Forgets a prepared statement; no error if the server does not know it. */
  closeStatement(name: string): void {
    this.#reserve(FRAME_BYTES + utf8Bound(name));
    const start = this.#begin("C");
    this.#bytes[this.#at++] = "S".charCodeAt(0);
    this.#cstring(name);
    this.#end(start);
  }

  simpleQuery(text: string): void {
    this.#reserve(FRAME_BYTES + utf8Bound(text));
    const start = this.#begin("Q");
    this.#cstring(text);
    this.#end(start);
  }

  terminate(): void {
    this.#reserve(FRAME_BYTES);
    this.#end(this.#begin("X"));
  }

  /** One value as Bind carries it: its length in bytes, or -1 for NULL, then its bytes. */
  parameter(type: ParameterType, value: unknown): void {
    this.#reserve(bound(type, value));
    this.#parameter(type, value);
  }

  #parameter(type: ParameterType, value: unknown): void {
    const parameter = parameterOf(type);
    if (parameter.isArray && value !== null) this.#array(parameter.element, value as ArrayLike<unknown>);
    else this.#element(parameter.element, value);
  }

  #array(element: ElementType, values: ArrayLike<unknown>): void {
    const start = this.#at;
    this.#at += 4;
    this.#int4(values.length === 0 ? 0 : 1);
    const nullFlagAt = this.#at;
    this.#int4(0);
    this.#int4(TYPES[element].oid);
    if (values.length > 0) {
      this.#int4(values.length);
      this.#int4(1);
    }
    for (let index = 0; index < values.length; index++) {
      const value = values[index];
      if (value === null) this.#view.setInt32(nullFlagAt, 1);
      this.#element(element, value);
    }
    this.#view.setInt32(start, this.#at - start - 4);
  }

  #element(type: ElementType, value: unknown): void {
    if (value === null) {
      this.#int4(-1);
      return;
    }
    switch (type) {
      case "int8": {
        const integer = integerWithin(type, value, Number.MAX_SAFE_INTEGER);
        this.#int4(8);
        this.#int4(Math.floor(integer / 2 ** 32));
        this.#int4(integer);
        return;
      }
      case "int4": {
        const integer = integerWithin(type, value, 2 ** 31 - 1);
        this.#int4(4);
        this.#int4(integer);
        return;
      }
      case "int2": {
        const integer = integerWithin(type, value, 2 ** 15 - 1);
        this.#int4(2);
        this.#int2(integer);
        return;
      }
      case "float8":
        if (typeof value !== "number") throw mismatch(type, value);
        this.#int4(8);
        this.#view.setFloat64(this.#at, value);
        this.#at += 8;
        return;
      case "bool":
        if (typeof value !== "boolean") throw mismatch(type, value);
        this.#int4(1);
        this.#bytes[this.#at++] = value ? 1 : 0;
        return;
      case "text":
        if (typeof value !== "string") throw mismatch(type, value);
        this.#string(value, "utf8");
        return;
      case "bytea":
        if (typeof value === "string") this.#string(value, "latin1");
        else if (value instanceof Uint8Array) {
          this.#int4(value.length);
          this.#bytes.set(value, this.#at);
          this.#at += value.length;
        } else throw mismatch(type, value);
        return;
    }
  }

  #string(value: string, encoding: "utf8" | "latin1"): void {
    const length = this.#bytes.write(value, this.#at + 4, encoding);
    this.#int4(length);
    this.#at += length;
  }

  #cstring(text: string): void {
    this.#at += this.#bytes.write(text, this.#at, "utf8");
    this.#bytes[this.#at++] = 0;
  }

  /** Writes the low 32 bits of an integer of any size. */
  #int4(value: number): void {
    this.#view.setInt32(this.#at, value);
    this.#at += 4;
  }

  #int2(value: number): void {
    this.#view.setInt16(this.#at, value);
    this.#at += 2;
  }

  #begin(type: string): number {
    this.#bytes[this.#at] = type.charCodeAt(0);
    this.#at += 5;
    return this.#at - 4;
  }

  /** The length of a message counts itself, but not the type before it. */
  #end(start: number): void {
    this.#view.setInt32(start, this.#at - start);
  }

  #reserve(bytes: number): void {
    const needed = this.#at + bytes;
    if (needed <= this.#bytes.length) return;
    if (needed > BYTES_MAX) throw new RangeError(`a call of ${needed} bytes is more than PostgreSQL takes`);
    const written = this.message;
    this.#replace(Math.max(needed, Math.min(2 * this.#bytes.length, BYTES_KEPT_MAX)));
    this.#bytes.set(written);
  }

  #replace(length: number): void {
    this.#bytes = Buffer.allocUnsafe(length);
    this.#view = viewOf(this.#bytes);
  }
}

const BINARY = 1;

const viewOf = (bytes: Buffer): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

const utf8Bound = (text: string): number => UTF8_BYTES_PER_CHARACTER_MAX * text.length + 1;

function parameterOf(type: ParameterType): Parameter {
  const parameter = PARAMETERS.get(type);
  if (parameter === undefined) throw new TypeError(`${type} is not a parameter type`);
  return parameter;
}

/** At least as many bytes as the value takes on the wire, its length and an array's head included. */
function bound(type: ParameterType, value: unknown): number {
  const { element, isArray } = parameterOf(type);
  if (!isArray) return elementBound(element, value);
  if (value === null) return 4;
  if (!isArrayLike(value)) throw mismatch(type, value);
  const size = TYPES[element].bytes;
  if (size !== undefined) return 24 + (4 + size) * value.length;
  let bytes = 24;
  for (let index = 0; index < value.length; index++) bytes += elementBound(element, value[index]);
  return bytes;
}

function elementBound(element: ElementType, value: unknown): number {
  if (element === "text" && typeof value === "string") return 4 + UTF8_BYTES_PER_CHARACTER_MAX * value.length;
  if (element === "bytea" && (typeof value === "string" || value instanceof Uint8Array))
    return 4 + value.length;
  return 12;
}

function isArrayLike(value: unknown): value is ArrayLike<unknown> {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && "length" in value);
}

function integerWithin(type: ElementType, value: unknown, max: number): number {
  if (typeof value !== "number") throw mismatch(type, value);
  const min = type === "int8" ? -max : -max - 1;
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new RangeError(`${value} is not an ${type} from ${min} to ${max}`);
}

function mismatch(type: ParameterType, value: unknown): TypeError {
  return new TypeError(
    `a parameter of type ${type} cannot be ${value === undefined ? "" : "a "}${typeof value}`,
  );
}
