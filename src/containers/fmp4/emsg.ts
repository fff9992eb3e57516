import { ascii, fullBox, u32, u64, u8 } from './box.ts';

/** An event in a stream of fragments. */
export interface EventMessage {
  /** URI that tells what the message is. */
  readonly scheme: string;
  readonly value: string;
  /** When it takes effect on the presentation timeline, in whole milliseconds. */
  readonly time: number;
  /** 32 bits; two messages of one scheme, value and id are the same event. */
  readonly id: number;
  readonly message: Buffer;
}

const TIMESCALE = 1000;
const UNKNOWN_DURATION = 0xffff_ffff;

/** An `emsg` box of version 1 (ISO/IEC 23009-1, 5.10.3.3), of unknown duration. */
export function emsg({ scheme, value, time, id, message }: EventMessage): Buffer {
  const end = u8(0);
  return fullBox(
    'emsg',
    1,
    0,
    u32(TIMESCALE),
    u64(time),
    u32(UNKNOWN_DURATION, id),
    ascii(scheme),
    end,
    ascii(value),
    end,
    message,
  );
}
