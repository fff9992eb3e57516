import type { AmfCursor } from './amf-cursor.ts';
import { amfObject, type AmfObject, type AmfValue } from './amf-value.ts';
import { RtmpError } from './error.ts';

const UNDEFINED = 0x00;
const NULL = 0x01;
const FALSE = 0x02;
const TRUE = 0x03;
const INTEGER = 0x04;
const DOUBLE = 0x05;
const STRING = 0x06;
const XML_DOCUMENT = 0x07;
const DATE = 0x08;
const ARRAY = 0x09;
const OBJECT = 0x0a;
const XML = 0x0b;
const BYTE_ARRAY = 0x0c;

interface Traits {
  readonly dynamic: boolean;
  readonly names: readonly string[];
}

/**
 * Reads AMF3 values from a cursor (Adobe AMF3 specification), with the reference tables of one body.
 * Vectors and dictionaries, which no publisher sends, and externalizable classes other than the
 * collection wrappers are refused.
 */
export class Amf3Reader {
  readonly #cursor: AmfCursor;
  readonly #strings: string[] = [];
  readonly #objects: AmfValue[] = [];
  readonly #traits: Traits[] = [];

  constructor(cursor: AmfCursor) {
    this.#cursor = cursor;
  }

  /** @throws RtmpError when the value is malformed, cut off, too deep, or there are too many */
  read(): AmfValue {
    return this.#cursor.nested(() => this.#value());
  }

  #value(): AmfValue {
    const marker = this.#cursor.u8();
    switch (marker) {
      case UNDEFINED:
        return undefined;
      case NULL:
        return null;
      case FALSE:
        return false;
      case TRUE:
        return true;
      case INTEGER:
        // 29 bits, two's complement.
        return (this.#u29() << 3) >> 3;
      case DOUBLE:
        return this.#cursor.double();
      case STRING:
        return this.#string();
      case XML_DOCUMENT:
      case XML:
        return this.#shared((length) => this.#cursor.utf8(length));
      case DATE:
        return this.#shared(() => new Date(this.#cursor.double()));
      case BYTE_ARRAY:
        return this.#shared((length) => {
          const start = this.#cursor.take(length);
          return this.#cursor.data.subarray(start, start + length);
        });
      case ARRAY:
        return this.#array();
      case OBJECT:
        return this.#object();
      default:
        throw new RtmpError(`unknown AMF3 marker 0x${marker.toString(16)}`);
    }
  }

  /** Variable-length integer: seven bits a byte, eight in the fourth. */
  #u29(): number {
    let value = 0;
    for (let i = 0; i < 3; i++) {
      const byte = this.#cursor.u8();
      value = (value << 7) | (byte & 0x7f);
      if ((byte & 0x80) === 0) return value;
    }
    return (value << 8) | this.#cursor.u8();
  }

  #string(): string {
    const head = this.#u29();
    if ((head & 1) === 0) return entry(this.#strings, head >> 1);
    const text = this.#cursor.utf8(head >> 1);
    if (text !== '') this.#strings.push(text);
    return text;
  }

  #shared(read: (length: number) => AmfValue): AmfValue {
    const head = this.#u29();
    if ((head & 1) === 0) return entry(this.#objects, head >> 1);
    const value = read(head >> 1);
    this.#objects.push(value);
    return value;
  }

  #array(): AmfValue {
    const head = this.#u29();
    if ((head & 1) === 0) return entry(this.#objects, head >> 1);
    const length = head >> 1;
    if (length > this.#cursor.left) throw new RtmpError('AMF3 array is cut off');
    const array: AmfValue[] = [];
    const named = amfObject();
    const index = this.#objects.push(array) - 1;
    let name = this.#string();
    // An associative part makes the whole a record; the dense part keeps its indices as names.
    const associative = name !== '';
    if (associative) this.#objects[index] = named;
    for (; name !== ''; name = this.#string()) named[name] = this.read();
    for (let i = 0; i < length; i++) {
      if (associative) named[i] = this.read();
      else array.push(this.read());
    }
    return associative ? named : array;
  }

  #object(): AmfValue {
    const head = this.#u29();
    if ((head & 1) === 0) return entry(this.#objects, head >> 1);
    if ((head & 0b111) === 0b111) return this.#externalizable();
    const traits = (head & 0b10) === 0 ? entry(this.#traits, head >> 2) : this.#readTraits(head);
    const object: AmfObject = amfObject();
    this.#objects.push(object);
    for (const name of traits.names) object[name] = this.read();
    if (traits.dynamic) {
      for (let name = this.#string(); name !== ''; name = this.#string()) object[name] = this.read();
    }
    return object;
  }

  #readTraits(head: number): Traits {
    const count = head >> 4;
    // The class name: every class is read as a plain record.
    this.#string();
    if (count > this.#cursor.left) throw new RtmpError('AMF3 class is cut off');
    const names: string[] = [];
    for (let i = 0; i < count; i++) names.push(this.#string());
    const traits = { dynamic: (head & 0b1000) !== 0, names };
    this.#traits.push(traits);
    return traits;
  }

  #externalizable(): AmfValue {
    const className = this.#string();
    if (className !== 'flex.messaging.io.ArrayCollection' && className !== 'flex.messaging.io.ObjectProxy') {
      throw new RtmpError(`AMF3 class ${JSON.stringify(className.slice(0, 80))} cannot be read`);
    }
    this.#traits.push({ dynamic: false, names: [] });
    const index = this.#objects.push(undefined) - 1;
    const value = this.read();
    this.#objects[index] = value;
    return value;
  }
}

function entry<T>(table: readonly T[], index: number): T {
  if (index >= table.length) throw new RtmpError(`AMF3 reference ${index} points nowhere`);
  return table[index] as T;
}
