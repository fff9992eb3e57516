import { ascii, fullBox, u32, u64, u8 } from './box.ts';

export interface EventMessage {
  /** URI of the kind of message. */
  readonly scheme: string;
  readonly value: string;
  /** Time on the presentation timeline, in whole milliseconds. */
  readonly time: number;
  /** 32 bits; two messages of one scheme, value and id are the same event. */
  readonly id: number;
  readonly message: Buffer;
}

const TIMESCALE = 1000;
const UNKNOWN_DURATION = 0xffff_ffff;

/** Builds an `emsg` box of version 1 (ISO/IEC 23009-1, 5.10.3.3), of unknown duration. */
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
