import { AmfCursor } from './amf-cursor.ts';
import { amfObject, type AmfObject, type AmfValue } from './amf-value.ts';
import { Amf3Reader } from './amf3.ts';
import { RtmpError } from './error.ts';

const NUMBER = 0x00;
const BOOLEAN = 0x01;
const STRING = 0x02;
const OBJECT = 0x03;
const NULL = 0x05;
const UNDEFINED = 0x06;
const REFERENCE = 0x07;
const ECMA_ARRAY = 0x08;
const OBJECT_END = 0x09;
const STRICT_ARRAY = 0x0a;
const DATE = 0x0b;
const LONG_STRING = 0x0c;
const UNSUPPORTED = 0x0d;
const XML = 0x0f;
const TYPED_OBJECT = 0x10;
const AVMPLUS = 0x11;

/**
 * Reads every AMF0 value of a body (Adobe AMF0 specification), AMF3 ones behind the avmplus marker included.
 * @throws RtmpError when a value is malformed, cut off, too deep, or there are too many
 */
export function decodeAmf0(data: Buffer): AmfValue[] {
  const cursor = new AmfCursor(data);
  const references: AmfValue[] = [];
  const values: AmfValue[] = [];
  while (cursor.left > 0) values.push(readValue(cursor, references));
  return values;
}

function readValue(cursor: AmfCursor, references: AmfValue[]): AmfValue {
  return cursor.nested(() => {
    const marker = cursor.u8();
    switch (marker) {
      case NUMBER:
        return cursor.double();
      case BOOLEAN:
        return cursor.u8() !== 0;
      case STRING:
        return cursor.utf8(cursor.u16());
      case LONG_STRING:
      case XML:
        return cursor.utf8(cursor.u32());
      case NULL:
        return null;
      case UNDEFINED:
      case UNSUPPORTED:
        return undefined;
      case TYPED_OBJECT:
        cursor.utf8(cursor.u16());
        return readProperties(cursor, references);
      case ECMA_ARRAY:
        // The count is a hint that encoders get wrong: the end marker rules.
        cursor.u32();
        return readProperties(cursor, references);
      case OBJECT:
        return readProperties(cursor, references);
      case STRICT_ARRAY:
        return readStrictArray(cursor, references);
      case DATE: {
        const time = cursor.double();
        cursor.u16();
        return new Date(time);
      }
      case REFERENCE: {
        const index = cursor.u16();
        if (index >= references.length) throw new RtmpError(`AMF0 reference ${index} points nowhere`);
        return references[index];
      }
      case AVMPLUS:
        return new Amf3Reader(cursor).read();
      default:
        throw new RtmpError(`unknown AMF0 marker 0x${marker.toString(16)}`);
    }
  });
}

function readProperties(cursor: AmfCursor, references: AmfValue[]): AmfObject {
  const object = amfObject();
  references.push(object);
  while (cursor.left > 0) {
    const name = cursor.utf8(cursor.u16());
    if (name === '' && cursor.data[cursor.position] === OBJECT_END) {
      cursor.take(1);
      break;
    }
    object[name] = readValue(cursor, references);
  }
  return object;
}

function readStrictArray(cursor: AmfCursor, references: AmfValue[]): AmfValue[] {
  const length = cursor.u32();
  if (length > cursor.left) throw new RtmpError('AMF0 array is cut off');
  const array: AmfValue[] = [];
  references.push(array);
  for (let i = 0; i < length; i++) array.push(readValue(cursor, references));
  return array;
}

/** Budget left for writing: values that refer to each other grow without end. */
interface Room {
  bytes: number;
  depth: number;
}

/** Largest nesting of values that are written. */
const MAX_DEPTH = 32;

/** Writes values one after the other as AMF0. Records become objects. */
export function encodeAmf0(...values: AmfValue[]): Buffer {
  return encodeAmf0Within(Infinity, ...values);
}

/**
 * Writes values that a client chose, which may refer to each other, as `encodeAmf0` does.
 * @param bytes limit of their size
 * @throws RtmpError when they exceed it, are nested too deeply, or AMF0 cannot carry one of them
 */
export function encodeAmf0Within(bytes: number, ...values: AmfValue[]): Buffer {
  const room = { bytes, depth: MAX_DEPTH };
  return Buffer.concat(values.map((value) => encodeValue(value, room)));
}

function encodeValue(value: AmfValue, room: Room): Buffer {
  if (value === undefined) return taken(room, Buffer.of(UNDEFINED));
  if (value === null) return taken(room, Buffer.of(NULL));
  if (typeof value === 'boolean') return taken(room, Buffer.of(BOOLEAN, value ? 1 : 0));
  if (typeof value === 'number') return taken(room, encodeDouble(NUMBER, value));
  if (typeof value === 'string') return taken(room, encodeString(value));
  if (value instanceof Date) return taken(room, Buffer.concat([encodeDouble(DATE, value.getTime()), Buffer.alloc(2)]));
  if (Buffer.isBuffer(value)) throw new RtmpError('AMF0 cannot carry bytes');
  if (room.depth === 0) throw new RtmpError(`AMF0 values are nested deeper than ${MAX_DEPTH}`);
  room.depth--;
  const body = Array.isArray(value) ? encodeArray(value, room) : encodeObject(value, room);
  room.depth++;
  return body;
}

function encodeArray(values: readonly AmfValue[], room: Room): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt8(STRICT_ARRAY);
  head.writeUInt32BE(values.length, 1);
  return Buffer.concat([taken(room, head), ...values.map((value) => encodeValue(value, room))]);
}

function encodeObject(object: AmfObject, room: Room): Buffer {
  const parts: Buffer[] = [Buffer.of(OBJECT)];
  for (const [name, value] of Object.entries(object)) {
    parts.push(taken(room, encodeName(name)), encodeValue(value, room));
  }
  parts.push(taken(room, Buffer.of(0, 0, OBJECT_END)));
  return Buffer.concat(parts);
}

function taken(room: Room, bytes: Buffer): Buffer {
  room.bytes -= bytes.length;
  if (room.bytes < 0) throw new RtmpError('AMF0 values are too large');
  return bytes;
}

function encodeDouble(marker: number, value: number): Buffer {
  const out = Buffer.alloc(9);
  out.writeUInt8(marker);
  out.writeDoubleBE(value, 1);
  return out;
}

function encodeString(value: string): Buffer {
  const text = Buffer.from(value);
  if (text.length <= 0xffff) return Buffer.concat([Buffer.of(STRING), encodeName(value)]);
  const head = Buffer.alloc(5);
  head.writeUInt8(LONG_STRING);
  head.writeUInt32BE(text.length, 1);
  return Buffer.concat([head, text]);
}

function encodeName(name: string): Buffer {
  const text = Buffer.from(name);
  if (text.length > 0xffff) throw new RtmpError('a name is too long for AMF0');
  const head = Buffer.alloc(2);
  head.writeUInt16BE(text.length);
  return Buffer.concat([head, text]);
}
