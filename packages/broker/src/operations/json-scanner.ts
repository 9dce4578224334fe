import { isUtf8 } from "node:buffer";
import { BrokerError, PAYLOAD_DEPTH_MAX } from "@queen/protocol";

/**
 * A body text is a request body held as a string in which each character is one byte of the UTF-8 JSON
 * (a latin1 container). Slices of it are cheap and carry payloads to the database byte for byte: a number
 * beyond double precision, the order of keys, a repeated key, an escape all come back as they were sent.
 *
 * The scanner walks a body text once, refuses everything that RFC 8259 does not allow, and answers with
 * positions, so that callers cut the slices that they need and build nothing for the rest. An object
 * is walked like this, and an array likewise with `openArray` and `nextElement`:
 *
 *   for (let key = scanner.openObject(pos); !scanner.isClose(key); ) {
 *     const colon = scanner.skipString(key);
 *     const value = scanner.skipColon(colon);
 *     const end = scanner.skipValue(value);
 *     key = scanner.nextMember(end);
 *   }
 */
export class JsonScanner {
  readonly text: string;
  /** The bytes of the text and zeros behind them, which end every loop because no token contains one. */
  readonly bytes: Buffer;
  /** What the string that was skipped last contains: `SEEN_ESCAPE`, `SEEN_NON_ASCII`, `SEEN_DELETE`, or 0. */
  seen = 0;

  constructor(text: string) {
    this.text = text;
    // Reading a byte from a buffer takes a third of the time of reading it from a string.
    this.bytes = Buffer.allocUnsafe(text.length + STRIDE);
    this.bytes.write(text, 0, "latin1");
    for (let at = text.length; at < this.bytes.length; at++) this.bytes[at] = 0;
  }

  /** Whether a string starts here. */
  isString(pos: number): boolean {
    return this.bytes[pos] === QUOTE;
  }

  isObject(pos: number): boolean {
    return this.bytes[pos] === OPEN_BRACE;
  }

  isArray(pos: number): boolean {
    return this.bytes[pos] === OPEN_BRACKET;
  }

  /** Whether the value that starts here, and was or will be skipped, is `null`. */
  isNull(pos: number): boolean {
    return this.bytes[pos] === LOWER_N;
  }

  /** Whether the object or array being walked ends here. */
  isClose(pos: number): boolean {
    return this.bytes[pos] === CLOSE_BRACE || this.bytes[pos] === CLOSE_BRACKET;
  }

  /** The decoded string whose quotes stand at `start` and before `end`; the scanner has skipped it. */
  stringAt(start: number, end: number): string {
    return decodeString(this.text.slice(start + 1, end - 1));
  }

  skipWhitespace(pos: number): number {
    const bytes = this.bytes;
    while (isWhitespace(bytes[pos]!)) pos++;
    return pos;
  }

  /** From an object's brace to its first key, or to its closing brace. */
  openObject(pos: number): number {
    if (this.bytes[pos] !== OPEN_BRACE) this.fail(pos, "an object");
    pos = this.skipWhitespace(pos + 1);
    if (this.bytes[pos] !== QUOTE && this.bytes[pos] !== CLOSE_BRACE) this.fail(pos, 'a key or "}"');
    return pos;
  }

  /** From the end of a key to its value. */
  skipColon(pos: number): number {
    const bytes = this.bytes;
    if (bytes[pos] !== COLON) {
      pos = this.skipWhitespace(pos);
      if (bytes[pos] !== COLON) this.fail(pos, '":"');
    }
    pos++;
    return isWhitespace(bytes[pos]!) ? this.skipWhitespace(pos) : pos;
  }

  /** From the end of a member's value to the next key, or to the object's closing brace. */
  nextMember(pos: number): number {
    const bytes = this.bytes;
    if (isWhitespace(bytes[pos]!)) pos = this.skipWhitespace(pos);
    if (bytes[pos] === CLOSE_BRACE) return pos;
    if (bytes[pos] !== COMMA) this.fail(pos, '"," or "}"');
    pos++;
    if (isWhitespace(bytes[pos]!)) pos = this.skipWhitespace(pos);
    if (bytes[pos] !== QUOTE) this.fail(pos, "a key");
    return pos;
  }

  /** From an array's bracket to its first value, or to its closing bracket. */
  openArray(pos: number): number {
    if (this.bytes[pos] !== OPEN_BRACKET) this.fail(pos, "an array");
    pos = this.skipWhitespace(pos + 1);
    if (this.bytes[pos] === CLOSE_BRACE) this.fail(pos, 'a value or "]"');
    return pos;
  }

  /** From the end of an element to the next one, or to the array's closing bracket. */
  nextElement(pos: number): number {
    const bytes = this.bytes;
    pos = this.skipWhitespace(pos);
    if (bytes[pos] === CLOSE_BRACKET) return pos;
    if (bytes[pos] !== COMMA) this.fail(pos, '"," or "]"');
    pos = this.skipWhitespace(pos + 1);
    if (this.isClose(pos)) this.fail(pos, "a value");
    return pos;
  }

  /** Refuses anything but whitespace between the end of the outermost value and the end of the body. */
  expectEnd(pos: number): void {
    pos = this.skipWhitespace(pos);
    if (pos !== this.text.length) this.fail(pos, "the end of the body");
  }

  /** From a string's opening quote to behind its closing quote; `seen` then says what it contains. */
  skipString(pos: number): number {
    const bytes = this.bytes;
    if (bytes[pos] !== QUOTE) this.fail(pos, "a string");
    pos++;
    let seen = 0;
    for (;;) {
      // Most bytes are plain: looked at by fours they take half of the time.
      while (
        (SEEN[bytes[pos]!]! | SEEN[bytes[pos + 1]!]! | SEEN[bytes[pos + 2]!]! | SEEN[bytes[pos + 3]!]!) ===
        0
      ) {
        pos += STRIDE;
      }
      let seenHere = SEEN[bytes[pos]!]!;
      while (seenHere < STOP) {
        seen |= seenHere;
        pos++;
        seenHere = SEEN[bytes[pos]!]!;
      }
      if (bytes[pos] === QUOTE) {
        this.seen = seen;
        return pos + 1;
      }
      if (bytes[pos] !== BACKSLASH) this.fail(pos, "a character of a string or its closing quote");
      seen |= SEEN_ESCAPE;
      pos = this.skipEscape(pos);
    }
  }

  /**
   * From the start of any value to its end. A value may nest `depthMax` arrays and objects; the levels
   * are counted on a stack of their own, so that no body can exhaust the call stack.
   */
  skipValue(pos: number, depthMax: number = PAYLOAD_DEPTH_MAX): number {
    const bytes = this.bytes;
    let depth = 0;
    for (;;) {
      const first = bytes[pos]!;
      if (first === QUOTE) {
        pos = this.skipString(pos);
      } else if (first === OPEN_BRACE) {
        pos = this.openObject(pos);
        if (++depth > depthMax) this.failDepth(pos, depthMax);
        if (bytes[pos] !== CLOSE_BRACE) {
          closers[depth] = CLOSE_BRACE;
          pos = this.skipColon(this.skipString(pos));
          continue;
        }
        depth--;
        pos++;
      } else if (first === OPEN_BRACKET) {
        pos = this.openArray(pos);
        if (++depth > depthMax) this.failDepth(pos, depthMax);
        if (bytes[pos] !== CLOSE_BRACKET) {
          closers[depth] = CLOSE_BRACKET;
          continue;
        }
        depth--;
        pos++;
      } else if (first === MINUS || isDigit(first)) {
        pos = this.skipNumber(pos);
      } else {
        pos = this.skipLiteral(pos);
      }

      // A value ends here: close what it completes, up to the next comma.
      for (;;) {
        if (depth === 0) return pos;
        let next = bytes[pos]!;
        if (isWhitespace(next)) {
          pos = this.skipWhitespace(pos);
          next = bytes[pos]!;
        }
        const closer = closers[depth]!;
        if (next === closer) {
          depth--;
          pos++;
          continue;
        }
        if (closer === CLOSE_BRACE) {
          pos = this.skipColon(this.skipString(this.nextMember(pos)));
        } else {
          pos = this.nextElement(pos);
        }
        break;
      }
    }
  }

  fail(pos: number, expected: string): never {
    throw new BrokerError(
      "INVALID_JSON",
      `Invalid JSON at byte ${pos}: expected ${expected}, found ${this.found(pos)}`,
    );
  }

  private failDepth(pos: number, depthMax: number): never {
    throw new BrokerError("INVALID_JSON", `Invalid JSON at byte ${pos}: expected at most ${depthMax} levels`);
  }

  private found(pos: number): string {
    if (pos >= this.text.length) return "the end of the body";
    const byte = this.bytes[pos]!;
    if (byte === QUOTE) return "a quote";
    if (byte > 0x20 && byte < 0x7f) return JSON.stringify(String.fromCharCode(byte));
    return `byte 0x${byte.toString(16).padStart(2, "0")}`;
  }

  /** From a backslash to behind its escape. */
  private skipEscape(pos: number): number {
    const bytes = this.bytes;
    const letter = bytes[pos + 1]!;
    if (letter !== LOWER_U) {
      if (!isEscapable(letter)) this.fail(pos + 1, "a character that may be escaped");
      return pos + 2;
    }
    const end = pos + 6;
    for (pos += 2; pos < end; pos++) {
      if (!isHexDigit(bytes[pos]!)) this.fail(pos, "a hexadecimal digit");
    }
    return end;
  }

  private skipNumber(pos: number): number {
    const bytes = this.bytes;
    if (bytes[pos] === MINUS) pos++;
    pos = bytes[pos] === ZERO ? pos + 1 : this.skipDigits(pos);
    if (bytes[pos] === DOT) pos = this.skipDigits(pos + 1);
    if (bytes[pos] === LOWER_E || bytes[pos] === UPPER_E) {
      pos++;
      if (bytes[pos] === PLUS || bytes[pos] === MINUS) pos++;
      pos = this.skipDigits(pos);
    }
    return pos;
  }

  private skipDigits(pos: number): number {
    const bytes = this.bytes;
    if (!isDigit(bytes[pos]!)) this.fail(pos, "a digit");
    do pos++;
    while (isDigit(bytes[pos]!));
    return pos;
  }

  private skipLiteral(pos: number): number {
    const first = this.bytes[pos]!;
    const literal =
      first === LOWER_T ? TRUE : first === LOWER_F ? FALSE : first === LOWER_N ? NULL : undefined;
    if (literal === undefined) this.fail(pos, "a value");
    for (let at = 0; at < literal.length; at++) {
      if (this.bytes[pos + at] !== literal[at]) this.fail(pos + at, literal.toString());
    }
    return pos + literal.length;
  }
}

/** The body text of a request's bytes. */
export function bodyText(buffer: Buffer): string {
  if (buffer.length === 0) throw new BrokerError("INVALID_JSON", "Empty request body");
  if (!isUtf8(buffer)) throw new BrokerError("INVALID_JSON", "Invalid JSON: the body is not valid UTF-8");
  if (buffer[0] === 0xef && buffer[1] === 0xbb && buffer[2] === 0xbf) {
    throw new BrokerError(
      "INVALID_JSON",
      "Invalid JSON at byte 0: expected a value, found a byte order mark",
    );
  }
  return buffer.toString("latin1");
}

/**
 * The text that the inside of a JSON string (without its quotes, skipped by the scanner) stands for.
 * An escaped lone surrogate stays a lone surrogate: callers refuse it where it is not allowed.
 */
export function decodeString(raw: string): string {
  if (!ESCAPE_OR_NON_ASCII.test(raw)) return raw;
  const text = Buffer.from(raw, "latin1").toString("utf8");
  return text.includes("\\") ? (JSON.parse(`"${text}"`) as string) : text;
}

const ESCAPE_OR_NON_ASCII = /[\\\u0080-\u00ff]/;

/** The JSON string for a text, quotes included, as a body text; it escapes what JSON.stringify escapes. */
export function encodeString(text: string): string {
  if (!NEEDS_ENCODING.test(text)) return `"${text}"`;
  return Buffer.from(JSON.stringify(text), "utf8").toString("latin1");
}

const NEEDS_ENCODING = /[^\u0020\u0021\u0023-\u005b\u005d-\u007f]/;

const QUOTE = 0x22;
const PLUS = 0x2b;
const COMMA = 0x2c;
const MINUS = 0x2d;
const DOT = 0x2e;
const ZERO = 0x30;
const COLON = 0x3a;
const UPPER_E = 0x45;
const OPEN_BRACKET = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_BRACKET = 0x5d;
const LOWER_E = 0x65;
const LOWER_F = 0x66;
const LOWER_N = 0x6e;
const LOWER_T = 0x74;
const LOWER_U = 0x75;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

const TRUE = Buffer.from("true");
const FALSE = Buffer.from("false");
const NULL = Buffer.from("null");

const isWhitespace = (byte: number): boolean =>
  byte <= 0x20 && (byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09);
const isDigit = (byte: number): boolean => byte >= ZERO && byte <= 0x39;
const isHexDigit = (byte: number): boolean =>
  isDigit(byte) || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x66);
const isEscapable = (byte: number): boolean => byte !== 0 && '"\\/bfnrt'.includes(String.fromCharCode(byte));

export const SEEN_ESCAPE = 1;
export const SEEN_NON_ASCII = 2;
export const SEEN_DELETE = 4;
const STOP = 8;
const STRIDE = 4;

/** What a byte inside a string adds to `seen`; `STOP` for quote, backslash and control characters. */
const SEEN = new Uint8Array(256);
SEEN.fill(STOP, 0, 0x20);
SEEN[QUOTE] = STOP;
SEEN[BACKSLASH] = STOP;
SEEN[0x7f] = SEEN_DELETE;
SEEN.fill(SEEN_NON_ASCII, 0x80);

/** The levels that a request may put around a payload. */
export const ENVELOPE_DEPTH_MAX = 8;

/** The brace or bracket that closes each level of the value being skipped. Level 0 is not used. */
const closers = new Uint8Array(PAYLOAD_DEPTH_MAX + ENVELOPE_DEPTH_MAX + 1);
