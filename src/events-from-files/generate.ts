import type { InputStream } from '../core/input-stream.ts';
import { encodeAmf0 } from '../protocols/rtmp/amf0.ts';
import type { GeneratedEvent } from './event-file.ts';

/** Identifies the user data to players of OvenMediaEngine's streams; a time and the data follow it. */
const UUID = Buffer.from('464d4c475241494e434f4c4f55524201', 'hex');
const TIME = '${EpochTime}';

/**
 * Puts an event into a stream; into none that has no media yet.
 * @param now milliseconds since the epoch: SEI has it in 64 bits in front of the data, and `${EpochTime}` stands for it
 */
export function generate(event: GeneratedEvent, input: InputStream, now = Date.now()): void {
  if (event.format === 'amf') {
    input.inject('AMF', encodeAmf0(event.name, event.properties));
    return;
  }
  const time = Buffer.alloc(8);
  time.writeBigUInt64BE(BigInt(now));
  const data = Buffer.concat([time, Buffer.from(event.data.replaceAll(TIME, String(now)))]);
  input.insertUserData({ uuid: UUID, data, keyFrameOnly: event.keyFrameOnly });
}
