import { OBU, writeLeb128 } from '../../../src/codecs/av1-obu.ts';
import { escapeNal, joinNals } from '../../../src/codecs/nal.ts';

/** Two bytes of CEA-608, without parity. */
export type Pair = readonly [first: number, second: number];

const COMMAND = {
  RCL: 0x20,
  BS: 0x21,
  RU2: 0x25,
  RU3: 0x26,
  RU4: 0x27,
  RDC: 0x29,
  RTD: 0x2b,
  EDM: 0x2c,
  CR: 0x2d,
  ENM: 0x2e,
  EOC: 0x2f,
};
/** First byte of preamble address codes by row from 1, and whether it is the second of the pair. */
const PREAMBLES = [0x11, 0x11, 0x12, 0x12, 0x15, 0x15, 0x16, 0x16, 0x17, 0x17, 0x10, 0x13, 0x13, 0x14, 0x14];
const SECOND_OF_PAIR = new Set([2, 4, 6, 8, 10, 13, 15]);
/** NAL units of SEI, up to the type of the message. */
const HEADS = { H264: Buffer.of(6), H265: Buffer.of(0x4e, 1) };
const IDENTIFIER = Buffer.from('b500314741393403', 'hex');

/** A miscellaneous control code, sent twice. */
export function command(name: keyof typeof COMMAND): Pair[] {
  const pair: Pair = [0x14, COMMAND[name]];
  return [pair, pair];
}

/** A preamble address code, sent twice. @param row from 1; indent a multiple of 4 */
export function preamble(row: number, indent = 0): Pair[] {
  const second = (SECOND_OF_PAIR.has(row) ? 0x70 : 0x50) | ((indent / 4) << 1);
  const pair: Pair = [PREAMBLES[row - 1] as number, second];
  return [pair, pair];
}

/** Letters, two in a pair. */
export function letters(text: string): Pair[] {
  return Array.from({ length: Math.ceil(text.length / 2) }, (_, index): Pair => {
    return [text.charCodeAt(index * 2), text.charCodeAt(index * 2 + 1) || 0];
  });
}

/** A pop-on caption of some rows at the bottom, up to its end. */
export function popOn(...rows: readonly string[]): Pair[] {
  const written = rows.flatMap((text, index) => [...preamble(16 - rows.length + index), ...letters(text)]);
  return [...command('RCL'), ...command('ENM'), ...written, ...command('EOC')];
}

function odd(byte: number): number {
  let ones = 0;
  for (let bits = byte; bits > 0; bits >>= 1) ones += bits & 1;
  return ones % 2 === 0 ? byte | 0x80 : byte;
}

/** A construct with a pair of CEA-608; null for padding. @param field 1 or 2 */
export function construct608(pair: Pair | undefined, field = 1): Buffer {
  const [first, second] = pair ?? [0, 0];
  return Buffer.of(0xfc | (field - 1), odd(first), odd(second));
}

/** Constructs of one packet of CEA-708 with a service block. */
export function constructs708(service: number, data: Buffer, sequence = 0): Buffer {
  const block = Buffer.concat([Buffer.of((service << 5) | data.length), data]);
  const size = Math.ceil((block.length + 1) / 2);
  const packet = Buffer.alloc(size * 2);
  packet[0] = (sequence << 6) | (size & 0x3f);
  block.copy(packet, 1);
  return Buffer.concat(
    Array.from({ length: size }, (_, index) =>
      Buffer.of(index === 0 ? 0xff : 0xfe, packet[index * 2] as number, packet[index * 2 + 1] as number),
    ),
  );
}

/** user_data_registered_itu_t_t35 with cc_data (ATSC A/53 Part 4, 6.2.3). */
function t35(constructs: Buffer): Buffer {
  const count = constructs.length / 3;
  return Buffer.concat([IDENTIFIER, Buffer.of(0x40 | count, 0xff), constructs, Buffer.of(0xff)]);
}

/** A NAL unit of SEI with closed captions. */
export function captionSei(codec: 'H264' | 'H265', constructs: Buffer): Buffer {
  const payload = t35(constructs);
  return Buffer.concat([
    HEADS[codec],
    escapeNal(Buffer.concat([Buffer.of(4, payload.length), payload, Buffer.of(0x80)])),
  ]);
}

/** Puts closed captions into a frame in canonical form. */
export function withCaptions(codec: 'H264' | 'H265' | 'AV1', frame: Buffer, constructs: Buffer): Buffer {
  if (codec !== 'AV1') return Buffer.concat([joinNals([captionSei(codec, constructs)]), frame]);
  const payload = Buffer.concat([Buffer.of(4), t35(constructs), Buffer.of(0x80)]);
  return Buffer.concat([Buffer.of((OBU.metadata << 3) | 2), writeLeb128(payload.length), payload, frame]);
}
