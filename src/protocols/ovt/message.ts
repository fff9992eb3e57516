import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import { OvtError } from './error.ts';
import { HEADER_BYTES, MAX_PAYLOAD_BYTES, writePacketHeader, type PAYLOAD } from './packet.ts';

/** Extension of Kiln: run of the stream that the client had, and the decoding time of the last packet that it got, in seconds. */
const Position = Type.Object({ run: Type.String(), seconds: Type.Number() });
export type Position = Static<typeof Position>;

const Request = Type.Object({
  id: Type.Integer(),
  application: Type.String(),
  target: Type.String(),
  after: Type.Optional(Position),
});
/**
 * Request of a client: `application` is describe, play or stop, `target` a whole OVT URL. An extension of Kiln is `after`, of
 * play: the position to resume from.
 */
export type Request = Static<typeof Request>;

const Response = Type.Object({
  id: Type.Integer(),
  application: Type.String(),
  code: Type.Integer(),
  message: Type.Optional(Type.String()),
  contents: Type.Optional(Type.Unknown()),
  complete: Type.Optional(Type.Boolean()),
});
/**
 * Answer, with the `id` of its request; or a notice of the origin, `notify` or `stop`, with 0. An extension of Kiln is
 * `complete`, in an answer to play: nothing is missing between `after` and the media that is sent.
 */
export type Response = Static<typeof Response>;

/** Message of the notice that tracks have changed; its contents are a description. */
export const TRACK_CHANGED = 'track_changed';

/** Extension of Kiln: code of the notice `stop` of a stream that nothing continues. */
export const GONE = 410;

/** Extension of Kiln: code of a node that already sends the stream to enough others, from which a client can get it. */
export const FULL = 503;

/**
 * Parses a message; undefined for anything but a JSON object. Members that are null are left out: OvenMediaEngine writes
 * lists without items so (docs/compatibility.md#ovt).
 */
export function readMessage(text: Buffer): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text.toString('utf8'), (_key, member: unknown) => member ?? undefined);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}

export function isRequest(message: unknown): message is Request {
  return Value.Check(Request, message);
}

/** @throws OvtError for an invalid response */
export function toResponse(message: unknown): Response {
  if (Value.Check(Response, message)) return message;
  throw new OvtError('an answer is not JSON with id, application and code');
}

/**
 * Writes the packets of one message.
 * @param now milliseconds since 1970
 */
export function writeMessage(
  type: typeof PAYLOAD.request | typeof PAYLOAD.response,
  message: object,
  now: number,
): Buffer {
  const json = Buffer.from(JSON.stringify(message));
  const packets = Math.max(1, Math.ceil(json.length / MAX_PAYLOAD_BYTES));
  const wire = Buffer.allocUnsafe(json.length + packets * HEADER_BYTES);
  let at = 0;
  for (let sequence = 0; sequence < packets; sequence++) {
    const start = sequence * MAX_PAYLOAD_BYTES;
    const end = Math.min(start + MAX_PAYLOAD_BYTES, json.length);
    const marker = sequence === packets - 1;
    writePacketHeader(wire, at, { type, marker, sequence, timestamp: now, session: 0 }, end - start);
    at += HEADER_BYTES;
    at += json.copy(wire, at, start, end);
  }
  return wire;
}
